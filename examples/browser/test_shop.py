"""The rope shop, as its visitors see it."""

from __future__ import annotations

import struct

import pytest

from examples.browser.browser import URL
from examples.browser.mcp_tools import Tools
from holdfast import ToolError
from holdfast.types.content import ImageContent


async def text_of(page: Tools, selector: str) -> str:
    """What an element says."""
    result = await page.browser_evaluate(function="element => element.textContent", target=selector)
    return result.text


async def test_the_shop_shows_its_ropes(page: Tools) -> None:
    seen = (await page.browser_snapshot()).text
    assert 'heading "The rope shop" [level=1]' in seen
    for rope in ("Hemp", "Nylon", "Silk"):
        assert f'button "{rope}, please"' in seen
    assert "The basket is empty." in seen


@pytest.mark.parametrize(("metres", "price"), [(1, "2.50"), (12, "30.00")])
async def test_a_rope_goes_into_the_basket(page: Tools, metres: int, price: str) -> None:
    await page.browser_type(target="#metres", text=str(metres))
    await page.browser_click(target="text=Hemp, please", element="the hemp")
    assert f"{metres} metres, {price} in all." in await text_of(page, "#basket")


async def test_the_basket_is_emptied_only_if_that_is_meant(page: Tools) -> None:
    await page.browser_click(target="text=Silk, please")
    for sure in (False, True):
        asked = await page.browser_click(target="#empty")
        assert "Throw all of it back?" in asked.text
        await page.browser_handle_dialog(accept=sure)
        kept = "1 metres, 9.00 in all." in await text_of(page, "#basket")
        assert kept is not sure


async def test_an_order_says_where_it_goes(page: Tools) -> None:
    await page.browser_click(target="text=Nylon, please")
    await page.browser_click(target="#order button")
    assert "Who are you?" in await text_of(page, "#answer")
    await page.browser_fill_form(
        fields=[
            {"name": "Name", "type": "textbox", "target": "#name", "value": "Ada"},
            {"name": "Where to", "type": "combobox", "target": "#port", "value": "Gdynia"},
        ]
    )
    await page.browser_click(target="#order button")
    assert "Thank you, Ada: 1 metres go to Gdynia." in await text_of(page, "#answer")


async def test_a_picture_can_be_taken(page: Tools) -> None:
    await page.browser_type(target="#metres", text="5")
    await page.browser_click(target="text=Silk, please")
    (picture,) = (await page.browser_take_screenshot(scale="css")).content
    assert isinstance(picture, ImageContent)
    assert picture.mime_type == "image/png"
    assert struct.unpack(">II", picture.bytes[16:24]) == (800, 640)


async def test_a_page_that_is_not_there_is_an_error(page: Tools) -> None:
    with pytest.raises(ToolError, match="ERR_HTTP_RESPONSE_CODE_FAILURE"):
        await page.browser_navigate(url=f"{URL}knots")
