"""web_page: what a page earns, and what it cannot do. With Chromium alone; a page is hostile until shown otherwise."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from rewardlab import part
from rewardlab.errors import RewardlabError
from rewardlab.verifiers.pages import browser as browsers
from rewardlab.verifiers.pages import clicks
from rewardlab.verifiers.pages.audit import audit
from rewardlab.verifiers.pages.browser import Browser, PageFault
from rewardlab.verifiers.pages.layout import luminance, over
from rewardlab.verifiers.pages.markup import faults
from rewardlab.verifiers.pages.verifier import page_picture, stated_page

ASKED = {"shows": ["Menu"], "controls": ["Save"], "theme": "light"}
PAGE = '<h1>Menu</h1><p id="n">ready</p><button onclick="n.innerText=\'saved\'">Save</button>'


# ---- without a browser -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (PAGE, ""),
        ("<p>a<b>b</p>", "<b> is not closed"),
        ("<p>a", "<p> is not closed"),
        ("<p>a</p></div>", "</div> closes nothing"),
        ('<p id="a"></p><p id="a"></p>', "'a' is there 2 times"),
        ('<p id="a" id="b"></p>', "has id twice"),
        ('<img src="" alt="x">', "empty src"),
        ("<p>1 < 2</p>", "&lt;"),
        ("<script>if (1 < 2) x()</script>", ""),
        ("<svg><path d=''/></svg><br><br/>", ""),
        ("<div/>", "does not end in itself"),
        ("plain text", "has no tag"),
        ("", "has no tag"),
    ],
)
def test_the_linter(page, said):
    found = faults(page)
    assert (said in " ".join(found)) if said else not found, found


def test_the_linter_may_want_a_doctype_and_a_title():
    assert len(faults(PAGE, doctype=True)) == 2
    assert not faults("<!DOCTYPE html><title>x</title>" + PAGE, doctype=True)


def test_the_page_of_a_reply():
    assert stated_page(f"<think><p></think>So:\n```html\n{PAGE}\n```\nDone.") == PAGE
    assert stated_page(PAGE) == PAGE


def test_colours_by_hand():
    # half of black over white; sRGB 0.5 is linear 0.214
    assert over((0, 0, 0, 0.5), (255, 255, 255, 1)) == (127.5, 127.5, 127.5, 1)
    assert luminance((127.5, 127.5, 127.5, 1)) == pytest.approx(0.2140, abs=1e-4)


def test_without_a_browser_there_is_no_verdict_and_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(browsers, "program", lambda: "")
    (found,) = part("reward", "web_page").check_all([(PAGE, ASKED)])
    assert found.correct is None
    assert "apt install chromium" in found.why
    with pytest.raises(RewardlabError, match="apt install chromium"):
        Browser()


# ---- with one --------------------------------------------------------------------------------------------------------

chromium = pytest.mark.skipif(bool(browsers.missing()), reason=browsers.missing())


@pytest.fixture(scope="module")
def browser():
    try:
        found = Browser(seconds=5.0)
    except RewardlabError as problem:
        pytest.skip(str(problem))
    yield found
    found.end()


@pytest.fixture(scope="module")
def confined(browser):
    """Audits in browsers of this process, which end with it."""
    from rewardlab.verifiers.pages import audit as module

    yield lambda page, asked=(), most=3, seconds=5.0: audit(page, dict(asked), most, False, seconds, False)
    module._end()


def looks(confined, page, **asked):
    return confined(page, asked, 0)["looks"]


@chromium
def test_a_page_as_asked(confined):
    found = confined(PAGE, ASKED)
    assert found["faults"] == []
    assert found["looks"] == dict.fromkeys(("asked", "readable", "apart", "within", "aligned", "looks"), 1.0)
    assert found["controls"] == [["Save", True]] or found["controls"] == [("Save", True)]


@chromium
def test_how_it_looks_by_hand(confined):
    # #777 on white: (1.05 / (0.1845 + 0.05)) = 4.48, just too little; #767676: 4.54; 3 is enough for 24 pixels
    two = '<p style="color:#777">a</p><p style="color:#767676">b</p>'
    assert looks(confined, two)["readable"] == 0.5
    assert looks(confined, '<p style="color:#777;font-size:24px">a</p>')["readable"] == 1.0
    # half seen through, black on white is 127.5: 1.05 / 0.264 = 3.98
    assert looks(confined, '<p style="opacity:.5">a</p>')["readable"] == 0.0
    crossed = '<p style="position:absolute;left:0;top:0">abc</p><p style="position:absolute;left:9px;top:5px">xyz</p><p>far</p>'
    assert looks(confined, crossed.replace("<p>far", '<p style="margin-top:200px">far'))["apart"] == pytest.approx(1 / 3)
    assert looks(confined, '<p>a</p><p style="margin-left:795px">bbb</p>')["within"] == 0.5
    assert looks(confined, '<p>a</p><p>b</p><p style="margin-left:31px">c</p>')["aligned"] == pytest.approx(2 / 3)
    # asked 1 of 3, the rest 1: .4 / 3 + .6
    found = looks(confined, "<h1>Menu</h1>", shows=["Menu"], controls=["Save"], theme="dark")
    assert found["asked"] == pytest.approx(1 / 3)
    assert found["looks"] == pytest.approx(0.4 / 3 + 0.6)
    # what cannot be seen is not there
    hidden = '<p>Hi</p><p style="color:white">Menu</p><p style="visibility:hidden">Menu</p><p style="opacity:0">Menu</p>'
    assert looks(confined, hidden, shows=["Menu"])["asked"] == 0.0
    cover = '<p>Menu</p><p>x</p><div style="position:absolute;left:0;top:0;width:300px;height:40px;background:red"></div>'
    assert looks(confined, cover, shows=["Menu"])["asked"] == 0.0


TEXT, BUTTON = "<p id='n'>a</p>", "<button>b</button>"
RESPONDS = {
    "a handler": (PAGE, True),
    "late": ("<p id=\"n\">a</p><button onclick=\"setTimeout(()=>{n.innerText=1},200)\">b</button>", True),
    "a listener above": (f"<div id='d'>{TEXT}{BUTTON}</div><script>d.onclick=()=>n.append(1)</script>", True),
    "a summary": ("<details><summary>m</summary>more</details>", True),
    "a box": ('<p>a</p><input type="checkbox">', True),
    "a text that is answered": ('<p id="n">a</p><input placeholder="b" onkeydown="n.innerText=1">', True),
    "a handler that colours its button": ('<button onclick="this.style.color=\'red\'">b</button>', True),
    "dead": ("<p>a</p><button>b</button>", False),
    "a link to nowhere": ('<p>a</p><a href="#">b</a>', False),
    "a link elsewhere": ('<p>a</p><a href="https://example.com">b</a>', False),
    "a text that stands where it was typed": ('<p>a</p><input placeholder="b">', False),
    "an error": ("<p id=\"n\">a</p><button onclick=\"n.innerText=1;save()\">b</button>", False),
    "a dialog": ("<button onclick=\"alert(1)\">b</button>", False),
    "a window": ("<button onclick=\"window.open('about:blank')\">b</button>", False),
    "styles under the mouse": ("<style>button:hover,button:focus,button:active{color:red;width:9em}</style>" + BUTTON, False),
    "an end": ("<button onclick=\"document.body.innerText=''\">b</button>", False),
    "mail, unasked": (PAGE + "<script>location='mailto:a@b.example'</script>", True),
    "its own part, unasked": (PAGE + "<script>location='#n'</script>", True),
    "a form sent on": ('<form action="https://example.com"><p>a</p><button>b</button></form>', False),
    "covered": (PAGE + '<div style="position:fixed;inset:0"></div>', False),
    "changes by itself": (TEXT + BUTTON + "<script>setInterval(()=>{n.innerText=Date.now()},50)</script>", False),
    # a page with chance of its own can gamble (docs/VERIFIERS.md): what it earns at random is not asserted
    "differs each time": (TEXT + BUTTON + "<script>n.innerText=performance.timeOrigin</script>", False),
}  # fmt: skip


def test_a_difference_that_is_not_repeated_is_no_response(monkeypatch):
    """What a page left alone and a click come to is scripted: a tick more after one click, as on a busy machine, and after none."""
    page = "page"
    control = SimpleNamespace(at=3, is_typed_into=False)
    browser = SimpleNamespace(errors=[], left=False)

    def state(text):
        nothing = {"filled": {}, "chosen": {}, "laid": {}, "scrolled": [0, 0]}
        return {"texts": 1, "parents": [-1, 0, 0, 0], "nodes": [[text]], **nothing}

    def said(*texts):
        left = list(texts)
        monkeypatch.setattr(clicks, "_state", lambda *_: state(left.pop(0)))
        return clicks._responds(browser, page, control, state("6"))

    assert said("saved", "saved")
    assert not said("6")
    assert not said("7", "6")
    assert not said("7", "8")


@chromium
@pytest.mark.parametrize("name", RESPONDS)
def test_what_counts_as_a_response(confined, name):
    page, responds = RESPONDS[name]
    found = confined(page)
    assert found["faults"] == [], found
    assert [bool(x) for _, x in found["controls"]] == [responds]


ATTACKS = {
    "an endless script": ("<p>a</p><script>for(;;);</script>", "took over"),
    "an endless chain of promises": ("<p>a</p><script>(async()=>{for(;;)await 0})()</script>", "took over"),
    "endless dialogs": ("<p>a</p><script>for(;;)alert(1)</script>", "took over"),
    "a hundred million characters": ("<p>a</p><script>document.body.append('x'.repeat(1e8))</script>", ""),
    "endless talk": ("<p>a</p><script>for(;;)console.log('x'.repeat(1e6))</script>", ""),
    "all memory": ("<p>a</p><script>a=[];for(;;)a.push(new Uint8Array(1e8).fill(1))</script>", ""),
    "elsewhere": ("<p>a</p><script>location='https://example.com'</script>", "goes away"),
    "elsewhere at the last moment": ("<p>a</p><script>setTimeout(()=>location='https://example.com',499)</script>", "goes away"),
    "a form that sends itself": ("<form id='f' action='https://example.com'>a</form><script>f.submit()</script>", "goes away"),
    "itself again": ("<p>a</p><script>location.reload()</script>", "goes away"),
    "an error": ("<p>a</p><script>start()</script>", "ReferenceError"),
    "an endless farewell": ("<p>a</p><button>b</button><script>onpagehide=()=>{for(;;);}</script>", "took over"),
    "too much": ("<p>a</p><script>document.body.innerHTML='<button>b</button>'.repeat(9000)</script>", ""),
    "too many threads": (
        "<p>a</p><script>for(let i=0;i<3000;i++)new Worker(URL.createObjectURL(new Blob(['for(;;);'])))</script>",
        "took over",
    ),
    "too long": ("<p>" + "a" * 200_000 + "</p>", "longer than"),
}


@chromium
@pytest.mark.parametrize("name", ATTACKS)
def test_what_hangs_floods_or_flees_does_not_run_and_harms_nothing(confined, name):
    page, said = ATTACKS[name]
    begun = time.monotonic()
    found = confined(page, seconds=2.0)
    assert found["faults"], found
    assert said in found["faults"][0]
    assert time.monotonic() - begun < 60
    assert confined(PAGE, ASKED)["looks"]["looks"] == 1.0


@chromium
def test_a_page_cannot_change_what_is_read_of_it(confined):
    page = (
        '<form name="querySelectorAll"><input name="attributes" placeholder="x"></form><img name="body" alt="Menu">'
        '<img name="documentElement" alt="Menu"><p style="color:white">faint</p><script>'
        "Element.prototype.getBoundingClientRect=()=>({width:9});getComputedStyle=()=>({color:'red'});Date=Math=JSON=null;"
        "Object.defineProperty(Node.prototype,'textContent',{get:()=>'Menu'});document.querySelectorAll=()=>[]</script>"
    )
    assert looks(confined, page, shows=["Menu"])["asked"] == 0.0
    assert looks(confined, page)["readable"] == 0.0


@chromium
def test_nothing_of_this_machine_can_be_reached(browser, tmp_path):
    secret = tmp_path / "secret.html"
    secret.write_text("canary")
    knocked: list[str] = []
    door = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=lambda: knocked.append(str(door.accept())), daemon=True).start()
    port = door.getsockname()[1]
    page = (
        f'<p id="n">a</p><iframe src="{secret.as_uri()}"></iframe><img alt="" src="http://127.0.0.1:{port}/"><script>'
        f"fetch('http://127.0.0.1:{port}/').then(()=>n.innerText='go'+'t').catch(()=>0);new WebSocket('ws://127.0.0.1:{port}');"
        f"fetch('{secret.as_uri()}').then(r=>r.text()).then(t=>n.innerText=t).catch(()=>0);"
        f"new RTCPeerConnection({{iceServers:[{{urls:'stun:127.0.0.1:{port}'}}]}}).createDataChannel('a')</script>"
    )
    browser.show(page)
    browser.let_pass(500)
    assert "canary" not in str(browser.layout())
    assert "got" not in str(browser.layout())
    # and not for want of sandboxes: this goes to a file outright
    browser.call("Page.navigate", url=secret.as_uri())
    time.sleep(0.2)
    assert "canary" not in str(browser.layout())
    assert not knocked
    door.close()


@chromium
def test_a_page_leaves_nothing_to_the_next(browser):
    browser.show("<p>a</p><script>name='x';globalThis.left='x';document.title='x';try{localStorage.a='x'}catch{}</script>")
    browser.let_pass(10)
    browser.show("<p id=\"n\">a</p><script>n.innerText='found:'+name+(globalThis.left||'')+document.title</script>")
    browser.let_pass(10)
    texts = [s for s in browser.layout()["strings"] if s.startswith("found:") and "+" not in s]
    assert texts == ["found:"]


def below(process: int) -> list[Path]:
    """Folders in /proc of all processes that a process started, and they."""
    found = [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    return [Path(f"/proc/{child}") for child in found] + [folder for child in found for folder in below(child)]


def rights(process: int) -> list[tuple[str, str, int]]:
    """Seccomp, NoNewPrivs and capabilities of each renderer below a process."""
    found = []
    for folder in below(process):
        if b"--type=renderer" in (folder / "cmdline").read_bytes():
            lines = dict(line.split(":\t", 1) for line in (folder / "status").read_text().splitlines() if ":\t" in line)
            found.append((lines["Seccomp"], lines["NoNewPrivs"], int(lines["CapEff"], 16)))
    return found


@chromium
def test_parts_of_the_browser_are_confined_by_its_own_sandbox_too(browser):
    browser.show(PAGE)
    browser.let_pass(10)
    # a renderer kept ready for the next page may only be starting
    until, found = time.monotonic() + 10, []
    while time.monotonic() < until and (not found or set(found) != {("2", "1", 0)}):
        time.sleep(0.05)
        with contextlib.suppress(OSError):
            found = rights(browser.confined.process.pid)
    assert set(found) == {("2", "1", 0)}


@chromium
def test_what_the_verifier_says():
    check = part("reward", "web_page")
    try:
        good, dead, unread, none = check.check_all([
            (f"```html\n{PAGE}\n```", ASKED), (PAGE.replace("onclick", "title"), ASKED), (PAGE, {"sows": []}), (PAGE, None),
        ])  # fmt: skip
    except RewardlabError as problem:
        pytest.skip(str(problem))
    assert good.correct is True
    assert good.parts["responds"] == pytest.approx(1 / 3)
    assert dead.correct is False
    assert "does not respond: Save" in dead.why
    assert (dead.parts["runs"], dead.parts["looks"], dead.parts["responds"]) == (1.0, 1.0, 0.0)
    assert unread.correct is None
    assert none.correct is True
    assert (page_picture(PAGE) or b"").startswith(b"\x89PNG")
    assert page_picture("<p>") is None


@chromium
def test_a_fault_is_told_by_the_browser_that_had_it(browser):
    browser.show(PAGE)
    with pytest.raises(PageFault, match="cannot be read"):
        browser.call("Page.nothing")
