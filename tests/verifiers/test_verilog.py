"""Designs in Verilog: truth tables, gates and depth worked out by hand; real tools where they are installed."""

from __future__ import annotations

import shutil
import time

import pytest

from rewardlab.verifiers.verilog import netlist, tools
from rewardlab.verifiers.verilog.verifier import stated_design, verilog

HEAD = "module top(input a, input b, input c, output y);"
GOLD = f"{HEAD} assign y = a & (b | c); endmodule"


def measured(body: str) -> netlist.Measured:
    return netlist.measured(netlist.read(f"{HEAD} {body} endmodule"))


@pytest.mark.parametrize(
    ("body", "rows", "area", "delay"),
    [
        # rows: those of c b a, from 000, for which y is 1
        ("assign y = a;", (1, 3, 5, 7), 0, 0),
        ("assign y = a & (b | c);", (3, 5, 7), 2, 2),
        ("assign y = a & b | a & c;", (3, 5, 7), 3, 2),
        # ~ binds tightest, then &, ^, |, &&, ||, ?:
        ("assign y = ~a ^ b & c;", (0, 2, 4, 7), 3, 2),
        ("assign y = c ? a : b;", (2, 3, 5, 7), 3, 1),
        ("assign y = a ~^ b || 1'b0;", (0, 3, 4, 7), 2, 2),
        # a wire counts once however often it is used, and may be used before it is assigned
        ("assign y = w & w; wire w = a | b;", None, 0, 0),
        ("wire w; assign y = w ^ w & c; assign w = a | b;", (1, 2, 3), 3, 3),
        ("assign y = !(!a);", (1, 3, 5, 7), 2, 2),
    ],
)
def test_what_a_module_computes_and_of_how_many_gates_it_is(body, rows, area, delay):
    if rows is None:
        with pytest.raises(ValueError, match="w is not declared"):
            measured(body)
        return
    found = measured(body)
    assert found.tables == {"y": sum(1 << row for row in rows)}
    assert (found.area, found.delay) == (area, delay)


@pytest.mark.parametrize(
    "body",
    [
        "assign y = a &;", "assign y = q;", "assign a = b;", "assign y = a; assign y = b;", "wire w; assign w = w; assign y = a;",
        "wire w; assign y = w;", "", "assign y = a", "assign y = a + b;", "wire a; assign y = a;", "assign y = $random;",
        "`include \"x\"\nassign y = a;", "always @(*) y = a;",
    ],
)  # fmt: skip
def test_what_is_no_module_of_single_wires_does_not_compile(body):
    verdict = verilog().check(f"{HEAD} {body} endmodule", GOLD)
    assert verdict.correct is False
    assert dict(verdict.parts) == dict.fromkeys(verdict.parts, 0.0) | {"form": 1.0}


def test_sizes_are_compared_with_the_reference_whether_a_design_works_or_not():
    def parts(body: str) -> list[float]:
        found = verilog().check(f"{HEAD} {body} endmodule", GOLD).parts
        return [found[name] for name in ("works", "area", "delay", "smaller", "faster")]

    # 2 / 3 of the gates, as deep;    one gate: 2 / 1;    none: at most 2
    assert parts("assign y = a & b | a & c;") == [1, 3, 2, 2 / 3, 1]
    assert parts("assign y = a & b;") == [0, 1, 1, 2, 2]
    assert parts("assign y = a;") == [0, 0, 0, 2, 2]
    assert parts("assign y = a & (b | c) & 1'b1 & 1'b1 & 1'b1;") == [1, 5, 5, 2 / 5, 2 / 5]
    wire = "module top(input a, output y); assign y = a; endmodule"
    assert [verilog().check(wire, wire).parts[name] for name in ("smaller", "faster")] == [1, 1]


def test_ports_count_by_name_and_a_bad_reference_gives_no_verdict():
    swapped = "module other(input c, b, a, output wire y); assign y = (c | b) & a; endmodule"
    assert verilog().check(f"So:\n```verilog\n{swapped}\n```\nDone.", GOLD).correct is True
    assert verilog().check(GOLD.replace("output y", "output z").replace("y =", "z ="), GOLD).correct is False
    for answer in (None, "", "y = a", {"testbench": "x"}):
        assert verilog().check(GOLD, answer).correct is None


def test_hostile_text_ends_soon():
    begun = time.process_time()
    for body in (
        "assign y = " + "(" * 2000, "assign y = " + "~" * 4000 + "a;", "assign y = " + "a & " * 1200 + "a;", "wire " * 900,
        "assign y = " + "a ? b : " * 600 + "c;", "assign y = a; " * 350, "//" * 2000,
        " ".join(f"wire w{i} = w{i + 1} | a;" for i in range(180)),
    ):  # fmt: skip
        assert verilog().check(f"{HEAD} {body} endmodule", GOLD).correct is False
    assert verilog().check("module " * 20_000 + "endmodule", GOLD).correct is False
    assert time.process_time() - begun < 2
    assert stated_design("endmodule module") == ""


COUNTER = """module counter(input clk, input reset, output reg [1:0] q);
always @(posedge clk) if (reset) q <= 0; else q <= q + 1;
endmodule"""
BENCH = """module bench; reg clk = 0, reset = 1; wire [1:0] q; integer wrong = 0, i; counter dut(clk, reset, q);
always #1 clk = ~clk;
initial begin #2 reset = 0; for (i = 1; i < 9; i = i + 1) begin #2 if (q !== i[1:0]) wrong = wrong + 1; end
$display("Mismatches: %0d in 8 samples", wrong); $finish; end
endmodule"""
installed = pytest.mark.skipif(any(shutil.which(name) is None for name in tools.PROGRAMS), reason="iverilog and yosys are programs")


ANSWER = {"testbench": BENCH, "reference": COUNTER, "top": "counter"}


@installed
def test_a_counter_is_compiled_simulated_and_synthesised():
    larger = COUNTER.replace("always", "reg [7:0] n; always @(posedge clk) n <= n + 3;\nalways", 1).replace(
        "q + 1", "q + (n == 200)"
    )
    texts = [COUNTER, COUNTER.replace("q + 1", "q + 2"), COUNTER.replace("reset)", "reset"), larger]
    same, wrong, broken, others = found = verilog(engine="tools", seconds=20.0).check_all([(text, ANSWER) for text in texts])
    assert [v.correct for v in found] == [True, False, False, False]
    assert (same.parts["smaller"], same.parts["faster"]) == (1.0, 1.0)
    assert same.parts["area"] >= 3
    assert wrong.parts["compiles"] == 1
    assert broken.parts["compiles"] == 0
    assert others.parts["compiles"] == 1
    assert others.parts["smaller"] < 1


@installed
def test_nothing_is_hidden_from_synthesis_and_a_reference_that_fails_gives_no_verdict():
    body = COUNTER.partition("\n")[2].replace("endmodule", "")
    hidden = COUNTER.replace(body, f"\n// synthesis translate_off\n{body}// synthesis translate_on\n")
    # an empty tower, of which the top would be the largest hierarchy
    tower = f"{COUNTER}\nmodule a; b u(); endmodule\nmodule b; c u(); endmodule\nmodule c; endmodule"
    inner = COUNTER.replace("module counter", "(* blackbox *) module inner")
    boxed = f"{inner}\nmodule counter(input clk, input reset, output [1:0] q); inner u(clk, reset, q); endmodule"
    found = verilog(engine="tools", seconds=20.0).check_all([(text, ANSWER) for text in (COUNTER, hidden, tower, boxed)])
    assert [(v.correct, v.parts["smaller"]) for v in found] == [(True, 1.0)] * 4
    other = ANSWER | {"reference": COUNTER.replace("q + 1", "q + 2")}
    assert verilog(engine="tools", seconds=20.0).check(COUNTER, other).correct is None


@pytest.mark.slow
def test_a_program_ends_with_all_that_it_has_started(tmp_path):
    begun = time.monotonic()
    command = f"(sleep 3; touch {tmp_path}/late) & echo started; sleep 30"
    assert tools._run(["sh", "-c", command], tmp_path, 0.3) == (-1, "sh took over 0.3 s")
    assert time.monotonic() - begun < 2
    assert tools._run(["sh", "-c", "echo one; echo two >&2; exit 3"], tmp_path, 5.0) == (3, "one\ntwo\n")
    time.sleep(3.2 - (time.monotonic() - begun))
    assert not (tmp_path / "late").exists()


def test_comments_and_attributes_are_taken_out_and_nothing_else():
    text = 'a /* x\n(* y */ b // c (*\n@(*) d @( * ) e (* keep, z = "*" *) f "// g" h'
    assert tools.plain(text).split() == ["a", "b", "@(*)", "d", "@(", "*", ")", "e", "f", '"//', 'g"', "h"]
    begun = time.process_time()
    for piece in ("(* ", "/* ", '"', "(*)", "// "):
        tools.plain(piece * 15_000)
    assert time.process_time() - begun < 1


def test_a_reference_needs_the_name_of_what_is_measured(monkeypatch):
    monkeypatch.setattr(tools, "missing", list)
    for answer in ({"testbench": BENCH, "reference": COUNTER}, ANSWER | {"top": "counter; shell"}, ANSWER | {"reference": 7}):
        verdict = verilog(engine="tools").check(COUNTER, answer)
        assert verdict.correct is None
        assert "'top'" in verdict.why


@pytest.mark.parametrize(
    "stated",
    [
        "initial $display(1);", 'initial $fopen("x");', '`include "/etc/passwd"', "`define X 1", "wire \\a ;",
        'import "DPI-C" function int abort();', 'import /* x */ "DPI" function int kill(int, int);',
    ],
)  # fmt: skip
def test_designs_that_could_do_more_than_compute_are_not_run(stated, monkeypatch):
    monkeypatch.setattr(tools, "_run", lambda *_: pytest.fail("was run"))
    found = tools.judge(f"module top; {stated} endmodule", {"testbench": BENCH}, "x", 1.0)
    assert found["compiles"] is False
    assert "not run" in found["why"]


def test_without_the_programs_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setattr(tools.shutil, "which", lambda name: None)
    verdict = verilog(engine="tools").check(COUNTER, {"testbench": BENCH})
    assert verdict.correct is None
    assert "apt install iverilog yosys" in verdict.why
