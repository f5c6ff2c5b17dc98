"""Addresses of servers are shown without passwords, also where these were not escaped."""

import pytest

from privbench.io.urls import hide_secrets, shown

TORN = [
    "postgresql://ann:s3cret/h0sh@host/shop",
    "postgresql://ann:12/s3cret/h0sh@host/shop",
    "postgresql://ann:x?a=s3cret&h0sh@host/shop",
    "postgresql://ann:12?s3cret=h0sh@host/shop",
    "postgresql://ann:12#s3cret#h0sh@host/shop",
    "postgresql://ann:s3cret/h0sh@12@host/shop",
    "mysql://ann:s3cret@h0sh@host/shop",
]


@pytest.mark.parametrize("url", TORN)
def test_no_part_of_a_password_is_shown(url: str) -> None:
    assert shown(url).partition("://")[2].removeprefix("ann@") == "host/shop"
    message = hide_secrets('no port "s3cret", no host "h0sh"', url)
    assert "s3cret" not in message
    assert "h0sh" not in message


@pytest.mark.parametrize("option", ["password", "sslpassword", "oauth_client_secret", "scram_client_key"])
def test_no_option_with_a_secret_is_shown(option: str) -> None:
    assert shown(f"postgresql://host/shop?{option}=h0sh&sslmode=require") == "postgresql://host/shop?sslmode=require"
    assert hide_secrets("bad h0sh", f"postgresql://host/shop?{option}=h0sh") == "bad ***"


def test_other_addresses_stay_as_they_are() -> None:
    for url in ("postgresql://host:5433/shop?host=/run/pg", "mysql://ann@host:3306/shop", "postgresql:///shop"):
        assert shown(url) == url
    assert shown("postgresql://host:5433/shop?user=a@b") == "postgresql://host:5433/shop?user=a%40b"
    assert hide_secrets("no host:5433", "postgresql://host:5433/shop?user=a@b") == "no host:5433"
