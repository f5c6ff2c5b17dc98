"""The functions and types that the source's own DDL may use without being taken for code.

A definition is worked out on a server: an index or a CHECK when rows are loaded, a materialized view when it is made, a
view by whoever reads it. So it may call only what always gives the same for the same values, changes nothing, and
looks at nothing but these. Not here, on purpose: what reads files, settings, the catalogue or other sessions, waits,
locks, or runs a text as SQL (`pg_read_file`, `dblink`, `query_to_xml`, `set_config`, `sleep`, `load_file` ..); what
makes results of any size from small ones (`repeat`, `lpad`, `format`, `space`, `generate_series`); whatever an
extension or the source itself defines. What privbench works out itself, parsed and bounded, is another list:
`functions`.
"""

from privbench.schema.ddl_tokens import word_set

_COMMON = """
abs acos asin atan atan2 avg bit_and bit_count bit_length bit_or bit_xor cast ceil ceiling char_length
character_length coalesce concat concat_ws cos cot count cume_dist date degrees dense_rank exp extract first_value
floor greatest grouping lag last_value lead least left length ln log log10 log2 lower ltrim max md5 min mod nth_value
ntile nullif octet_length percent_rank pi position pow power radians rank regexp_instr regexp_like regexp_replace
regexp_substr replace reverse right round row_number rtrim sign sin sqrt std stddev stddev_pop stddev_samp substr
substring sum tan time timestamp trim upper var_pop var_samp variance
"""
_POSTGRES = """
abbrev age any_value area array_agg array_append array_cat array_length array_lower array_ndims array_position
array_positions array_prepend array_remove array_replace array_to_string array_upper ascii bool_and bool_or box bpchar
broadcast btrim cardinality cbrt center chr circle convert_from convert_to corr covar_pop covar_samp date_bin
date_part date_trunc daterange decode diameter div encode every family float4 float8 gcd height host hostmask initcap
int2 int4 int4range int8 int8range isempty isfinite json_agg json_array_length json_build_array json_build_object
json_extract_path json_extract_path_text json_object_agg json_typeof jsonb_agg jsonb_array_elements
jsonb_array_elements_text jsonb_array_length jsonb_build_array jsonb_build_object jsonb_extract_path
jsonb_extract_path_text jsonb_object_agg jsonb_set jsonb_strip_nulls jsonb_typeof justify_days justify_hours
justify_interval lcm lower_inc lower_inf lseg make_date make_interval make_time make_timestamp make_timestamptz
masklen mode netmask network num_nonnulls num_nulls numeric numrange overlay path percentile_cont percentile_disc
phraseto_tsquery plainto_tsquery point polygon radius regexp_count regexp_match regexp_matches regexp_split_to_array
regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope row_to_json sha224 sha256 sha384 sha512 setweight
similar_to_escape split_part starts_with string_agg string_to_array strpos text timestamptz timezone to_char to_date
to_json to_jsonb to_number to_timestamp to_tsquery to_tsvector translate trunc ts_rank tsrange tstzrange unnest
upper_inc upper_inf varchar websearch_to_tsquery width width_bucket
"""
_MYSQL = """
adddate addtime ascii bin char convert conv convert_tz crc32 date_add date_format date_sub datediff day dayname
dayofmonth dayofweek dayofyear elt field find_in_set format from_days from_unixtime get_format group_concat hex hour
if ifnull inet6_aton inet6_ntoa inet_aton inet_ntoa insert instr isnull json_array json_arrayagg json_compact
json_contains json_contains_path json_depth json_exists json_extract json_keys json_length json_object json_objectagg
json_query json_quote json_type json_unquote json_valid json_value last_day lcase locate makedate maketime microsecond
mid minute month monthname oct ord period_add period_diff quarter quote sec_to_time second sha sha1 sha2 soundex
str_to_date strcmp subdate substring_index subtime time_format time_to_sec timediff timestampadd timestampdiff to_days
to_seconds truncate ucase unhex unix_timestamp week weekday weekofyear year yearweek values
"""
FUNCTIONS = {
    "postgres": word_set(_COMMON + _POSTGRES),
    "mysql": word_set(_COMMON + _MYSQL),
}
CLOCK = word_set(
    """now clock_timestamp statement_timestamp transaction_timestamp timeofday current_timestamp current_time
    current_date localtime localtimestamp curdate curtime sysdate utc_date utc_time utc_timestamp current_user
    session_user user current_role current_catalog current_schema random rand gen_random_uuid uuid uuidv4 uuidv7
    uuid_short"""
)
"""What tells the time, who asks, or a random number. It changes nothing, so that defaults and views may use it."""
NEXT_NUMBER = frozenset(("nextval",))
"""Only as a default: it takes a number from a sequence."""
TYPES = {
    "postgres": word_set(
        """smallint int2 integer int int4 bigint int8 numeric decimal real float float4 float8 double money boolean bool
        text varchar character char bpchar name date time timetz timestamp timestamptz interval bytea uuid json jsonb
        jsonpath xml inet cidr macaddr macaddr8 point line lseg box path polygon circle bit varbit tsvector tsquery
        int4range int8range numrange tsrange tstzrange daterange int4multirange int8multirange nummultirange
        tsmultirange tstzmultirange datemultirange oid smallserial serial bigserial"""
    ),
    "mysql": word_set(
        """tinyint smallint mediumint int integer bigint decimal numeric float double real bit bool boolean date
        datetime timestamp time year char varchar binary varbinary tinyblob blob mediumblob longblob tinytext text
        mediumtext longtext enum set json geometry point linestring polygon multipoint multilinestring multipolygon
        geometrycollection geomcollection uuid inet4 inet6 vector"""
    ),
}
