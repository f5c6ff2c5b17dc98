"""Public words that made-up strings are put together from: common names, places and plain English words.

Written by hand, the common ones first, in letters of ASCII alone and without spaces or hyphens, so that strings that
are put together with these can be taken apart again and never meet. Nothing here depends on any data.
"""

FIRST_NAMES = tuple(
    """
    Mary James Linda John Maria Robert Anna Michael Patricia William Sarah David Barbara Thomas Laura Daniel Susan
    Richard Karen Joseph Lisa Peter Nancy Charles Emma Paul Julia Mark Sandra Steven Helen Kevin Sofia Andrew Alice
    George Carol Edward Ruth Brian Diana Frank Eva Martin Sharon Jose Amy Carlos Angela Luis Rachel Juan Nina
    Antonio Claire Ali Fatima Omar Aisha Wei Mei Hiroshi Yuki Raj Priya Arjun Anita Chen Li Ivan Olga Dmitri Elena
    Pierre Marie Hans Greta Lars Ingrid Marco Giulia Jan Pablo Lucia Samuel Grace Benjamin Hannah Nathan Olivia Adam
    Emily Aaron Sophie Henry Chloe Jack Ella Oscar Mia Leo Zoe Max Ida Felix Clara Simon Nora Victor Irene Hugo Rosa
    Erik Astrid Walter Gloria Arthur Joyce Ralph Teresa Roy Janet Louis Doris Philip Martha Harry Rose Albert
    Frances Howard Evelyn Fred Jean Eugene Alma Carl Judith Russell Rita Bruce Louise Gerald Anne Keith Marion Roger
    Phyllis Lawrence Norma Terry Paula Sean Ellen Austin Katherine Jesse Megan Dylan Lauren Jordan Amber Bryan
    Brittany Billy Danielle Joe Natalie Gabriel Victoria Logan Abigail Alan Isabel Ethan Madison Noah Ava Mason Lily
    Lucas Ruby Isaac Violet Caleb Hazel Owen Stella Wyatt Lena Julian Elsa Theo Vera Jonas Emil Frida Anton Tilda
    Nils Saga Rafael Carmen Diego Elisa Mateo Paloma Andres Ines Miguel Pilar Tomas Beatriz Kofi Ama Kwame Abena
    Tunde Ngozi Emeka Zainab Hassan Leila Karim Yasmin Tariq Noor Kenji Sakura Takeshi Hana Jun Akiko Minh Linh Tuan
    Lan Suresh Deepa Vikram Kavita Anil Sunita
    """.split()  # noqa: SIM905
)

LAST_NAMES = tuple(
    """
    Smith Johnson Williams Brown Jones Garcia Miller Davis Rodriguez Martinez Hernandez Lopez Gonzalez Wilson
    Anderson Thomas Taylor Moore Jackson Martin Lee Perez Thompson White Harris Sanchez Clark Ramirez Lewis Robinson
    Walker Young Allen King Wright Scott Torres Nguyen Hill Flores Green Adams Nelson Baker Hall Rivera Campbell
    Mitchell Carter Roberts Gomez Phillips Evans Turner Diaz Parker Cruz Edwards Collins Reyes Stewart Morris
    Morales Murphy Cook Rogers Gutierrez Ortiz Morgan Cooper Peterson Bailey Reed Kelly Howard Ramos Kim Cox Ward
    Richardson Watson Brooks Chavez Wood James Bennett Gray Mendoza Ruiz Hughes Price Alvarez Castillo Sanders Patel
    Myers Long Ross Foster Jimenez Powell Jenkins Perry Russell Sullivan Bell Coleman Butler Henderson Barnes Fisher
    Vasquez Simmons Graham Murray Ford Castro Marshall Owens Harrison Fernandez McDonald Woods Washington Kennedy
    Wells Vargas Henry Chen Freeman Webb Tucker Guzman Burns Crawford Olson Simpson Porter Hunter Gordon Mendez
    Silva Shaw Snyder Mason Dixon Munoz Hunt Hicks Holmes Palmer Wagner Black Robertson Boyd Stone Salazar Fox
    Warren Mills Meyer Rice Schmidt Garza Daniels Ferguson Nichols Stephens Soto Weaver Ryan Gardner Payne Grant
    Dunn Kelley Spencer Hawkins Arnold Pierce Hansen Peters Santos Hart Bradley Knight Elliott Cunningham Duncan
    Armstrong Hudson Carroll Lane Riley Andrews Alvarado Ray Delgado Berry Perkins Hoffman Johnston Matthews Pena
    Richards Contreras Willis Carpenter Lawrence Sandoval Guerrero George Chapman Rios Estrada Ortega Watkins Greene
    Nunez Wheeler Valdez Harper Burke Larson Santiago Maldonado Morrison Franklin Carlson Austin Dominguez Carr
    Lawson Jacobs Obrien Lynch Singh Vega Bishop Montgomery Oliver Jensen Harvey Williamson Gilbert Dean Sims
    Espinoza Howell Li Wong Reid Hanson Le McCoy Garrett Burton Fuller Wang Weber Welch Rojas Lucas Marquez Fields
    Park Yang Little Banks Padilla Day Walsh Bowman Schultz Luna Fowler Mejia
    """.split()  # noqa: SIM905
)

CITIES = tuple(
    """
    London Paris Berlin Madrid Rome Tokyo Sydney Toronto Chicago Boston Dallas Houston Denver Seattle Atlanta Miami
    Austin Phoenix Detroit Portland Vienna Prague Warsaw Budapest Lisbon Dublin Oslo Stockholm Helsinki Copenhagen
    Brussels Amsterdam Hamburg Munich Cologne Zurich Geneva Milan Naples Turin Venice Florence Barcelona Valencia
    Seville Lyon Marseille Toulouse Bordeaux Nantes Lille Manchester Liverpool Leeds Bristol Glasgow Edinburgh
    Cardiff Belfast Moscow Kyiv Minsk Riga Tallinn Vilnius Athens Istanbul Ankara Cairo Casablanca Tunis Lagos Accra
    Nairobi Johannesburg Durban Mumbai Delhi Kolkata Chennai Bangalore Hyderabad Karachi Lahore Dhaka Colombo
    Bangkok Hanoi Jakarta Manila Singapore Shanghai Beijing Guangzhou Shenzhen Chengdu Wuhan Seoul Busan Osaka Kyoto
    Nagoya Sapporo Melbourne Brisbane Perth Adelaide Auckland Wellington Montreal Vancouver Calgary Ottawa Winnipeg
    Havana Bogota Lima Quito Santiago Montevideo Recife Salvador Fortaleza Curitiba Springfield Franklin Clinton
    Georgetown Salem Madison Arlington Ashland Burlington Oxford Dover Jackson Milton Newport Riverside Cleveland
    Dayton Lexington Milford Winchester Kingston Auburn Hudson Marion Greenville Fairview Oakland Lancaster Clayton
    Centerville Lebanon Mayfield Brookfield Harrison Hamilton Troy Monroe Trenton Concord Albany Buffalo Rochester
    Syracuse Baltimore Richmond Norfolk Raleigh Charlotte Columbia Savannah Orlando Tampa Nashville Memphis
    Louisville Cincinnati Columbus Indianapolis Milwaukee Minneapolis Omaha Wichita Tulsa Tucson Sacramento Fresno
    Spokane Boise Reno Helena Fargo Lincoln Topeka
    """.split()  # noqa: SIM905
)

COUNTRIES = tuple(
    """
    Germany France Brazil Canada India Japan China Italy Spain Mexico Australia Russia Poland Sweden Norway Denmark
    Finland Austria Switzerland Belgium Netherlands Portugal Greece Ireland Turkey Egypt Nigeria Kenya Argentina Chile
    Colombia Peru Indonesia Philippines Thailand Vietnam Malaysia Singapore Israel Ukraine Romania Hungary Bulgaria
    Croatia Serbia Slovakia Slovenia Estonia Latvia Lithuania Iceland Luxembourg Malta Cyprus Morocco Algeria Tunisia
    Ghana Ethiopia Uganda Tanzania Zambia Zimbabwe Botswana Namibia Angola Mozambique Senegal Cameroon Rwanda Mali
    Pakistan Bangladesh Nepal Mongolia Kazakhstan Uzbekistan Iran Iraq Jordan Lebanon Kuwait Qatar Oman Yemen Cuba
    Jamaica Haiti Panama Honduras Guatemala Nicaragua Ecuador Bolivia Paraguay Uruguay Venezuela Guyana Suriname Fiji
    Samoa Tonga Laos Cambodia Myanmar Bhutan Armenia Georgia Azerbaijan Albania Moldova Belarus Andorra Monaco Gabon
    Benin Togo Niger Chad Sudan Somalia Eritrea Malawi Lesotho Liberia Gambia Guinea Burundi Madagascar Mauritius
    """.split()  # noqa: SIM905
)

REGIONS = tuple(
    """
    California Texas Florida Ontario Bavaria Quebec Victoria Queensland Tuscany Andalusia Catalonia Normandy Brittany
    Provence Saxony Hesse Holland Zeeland Utrecht Flanders Wallonia Tyrol Styria Carinthia Bern Ticino Lombardy
    Piedmont Liguria Umbria Sicily Sardinia Calabria Apulia Veneto Galicia Aragon Castile Navarre Cornwall Devon
    Dorset Essex Kent Norfolk Suffolk Surrey Sussex Yorkshire Cheshire Cumbria Durham Lincolnshire Scotland Wales
    Ulster Leinster Munster Connacht Jutland Zealand Scania Lapland Karelia Silesia Mazovia Pomerania Bohemia Moravia
    Transylvania Thrace Macedonia Crete Anatolia Punjab Gujarat Kerala Assam Bihar Odisha Rajasthan Java Sumatra Bali
    Luzon Hokkaido Kanto Kansai Kyushu Shikoku Sichuan Yunnan Hunan Hubei Shandong Alberta Manitoba Saskatchewan
    Newfoundland Alaska Arizona Colorado Georgia Idaho Illinois Indiana Iowa Kansas Kentucky Louisiana Maine Maryland
    Michigan Minnesota Missouri Montana Nebraska Nevada Ohio Oklahoma Oregon Pennsylvania Tennessee Utah Vermont
    Virginia Washington Wisconsin Wyoming Jalisco Sonora Chiapas Oaxaca Yucatan Bahia Parana Pernambuco Antioquia
    """.split()  # noqa: SIM905
)

STREETS = tuple(
    """
    Oak Maple Cedar Pine Elm Park Main Church Mill River Lake Hill Spring Station School High Green Bridge Garden
    Forest Meadow Sunset Highland Prospect Center Market Water North South East West Washington Lincoln Jefferson
    Franklin Madison Jackson Walnut Chestnut Willow Birch Cherry Dogwood Magnolia Laurel Holly Ash Poplar Sycamore
    Spruce Hickory Valley Ridge Summit Orchard Grove Railroad College Mechanic Pleasant Union Liberty Adams Broad
    Front Canal Castle
    """.split()  # noqa: SIM905
)
STREET_KINDS = ("Street", "Avenue", "Road", "Lane", "Drive", "Court", "Place", "Way")
DIRECTIONS = ("North", "South", "East", "West", "New", "Old", "Upper", "Lower", "Port", "Lake", "Fort", "Mount")
COMPANY_KINDS = ("Inc", "Ltd", "LLC", "Group", "Partners", "Holdings", "Industries", "Services")

NOUNS = tuple(
    """
    home news about products shop contact blog team support account order search profile gallery archive events jobs
    help terms privacy press music photo video books travel garden kitchen office sports health science history
    people market report guide review forum store sale summer winter spring autumn river mountain island forest city
    street house school train plane bridge water fire stone paper glass metal wood light shadow morning evening
    night letter number table chair window door road field tree flower bird horse lion tiger eagle wolf bear fox
    """.split()  # noqa: SIM905
)

WORDS_OF_TWO = tuple("of in to at by on is it as or an we no so up if".split())  # noqa: SIM905
WORDS_OF_THREE = tuple(
    "the and for not all new old day way two big red one our use her him who let far sky sun sea run".split()  # noqa: SIM905
)
WORDS_OF_FOUR = tuple(
    """
    with from this that time good long side high open last year home line work next life hand part case week room
    fact area book word door road team game city name land blue rain moon wind tree ship song gold dark late
    """.split()  # noqa: SIM905
)
WORDS_OF_FIVE = tuple(
    """
    order house small large water point light paper north south river great short plain quick green after world
    story month night money group state party field price table music heart stone glass ocean dream
    """.split()  # noqa: SIM905
)
WORDS_OF_SIX = tuple("common number public second family school system market office summer winter letter".split())  # noqa: SIM905
WORDS_OF_SEVEN = tuple(
    """
    account general certain between another include service product history company morning evening nothing without
    support program problem million kitchen journey village station teacher picture section culture century
    """.split()  # noqa: SIM905
)
WORDS_OF_EIGHT = tuple("business question children together mountain language distance pleasure".split())  # noqa: SIM905
