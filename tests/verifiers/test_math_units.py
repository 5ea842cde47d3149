r"""Units in words, in signs and in LaTeX; words that multiply; approximations; equations that state what was asked."""

from __future__ import annotations

import pytest

from rewardlab.verifiers.math.verifier import math


def said(reply: str, answer: str) -> bool | None:
    return math().check(rf"\boxed{{{reply}}}", answer).correct


@pytest.mark.parametrize(
    ("answer", "replies"),
    [
        ("20", [r"20^\circ\text{C}", "20°C", r"20^\circ\text{F}", r"20\,^{\circ}\mathrm{C}", "20℃", r"20\text{ degrees Celsius}"]),
        ("20°C", ["20", r"20\,^{\circ}\mathrm{C}", r"20\text{ degrees Celsius}", r"20^\circ C"]),
        ("5", [r"5\,\Omega", r"5\ \mu\text{F}", r"5\ \text{µm}", r"5\,\mathrm{J\,K^{-1}}", r"5\ \text{m}^{-1}", "5 Ω",
               r"5\ \frac{\text{m}}{\text{s}}", r"5\ \mathrm{kg\cdot m/s^2}", r"5\,\mathrm{mol\,L^{-1}}", r"5\ \mathrm{k\Omega}",
               r"5\ \text{cm}^{3}", r"5\text{ kWh}", r"5\text{ eV}", r"5\text{ units}^2", r"5\text{ rupees}", r"5\text{ times}",
               r"5\text{ times a day}", r"5\text{ more apples}", r"5\text{ years older}", r"5\text{ in all}"]),
        ("42", [r"42\text{ apples}"]),
        (r"10\text{ m/s}", [r"10\,\mathrm{m\,s^{-1}}", r"10\,\mathrm{m/s}", r"10\ \frac{\text{m}}{\text{s}}", r"10\text{ m per s}",
                            r"10\text{ meters per second}", r"10\ \mathrm{s^{-1}\,m}", "10"]),
        (r"5\text{ m/s}^2", [r"5\,\mathrm{m\,s^{-2}}", r"5\,\mathrm{m/s^{2}}", r"5\ \frac{\mathrm{m}}{\mathrm{s}^2}"]),
        (r"5\text{ J/(kg K)}", [r"5\,\mathrm{J\,kg^{-1}\,K^{-1}}", r"5\ \frac{\text{J}}{\text{kg}\cdot\text{K}}"]),
        (r"5\text{ V}", [r"5\text{ volts}", r"5\,\mathrm{V}"]),
        (r"5\text{ ohms}", [r"5\ \Omega", r"5\,\mathrm{\Omega}"]),
        (r"5\ \mu\mathrm{F}", [r"5\text{ microfarads}", r"5\ \text{µF}", "5"]),
        (r"5\text{ kJ}", [r"5\text{ kilojoules}"]),
        (r"5\text{ km/h}", [r"5\text{ kilometers per hour}", r"5\ \mathrm{km\,h^{-1}}", "5 km/h"]),
        ("5 mph", [r"5\text{ miles per hour}", r"5\text{ mi/hr}"]),
        (r"5\text{ nm}", [r"5\text{ nanometers}", r"5\text{ nanometres}"]),
        (r"5\text{ g}", [r"5\text{ grams}"]),
        ("5 km", [r"5\text{ kilometers}", r"5\text{ km away}", r"5\text{ in total}"]),
        ("12 square units", [r"12\text{ units}^2", r"12\text{ units}"]),
        ("3 apples", [r"3\text{ apple}", r"3\text{ red apples}"]),
        ("0.5", [r"5\text{ tenths}", r"500\text{ thousandths}"]),
        ("0.6", [r"3\text{ fifths}"]),
        ("500000", [r"5\text{ lakh}", r"5\text{ lakhs}", r"500\text{ thousand}"]),
        ("5000000000000000000", [r"5\text{ quintillion}"]),
        (r"5\mu", [r"5\mu"]),
    ],
)  # fmt: skip
def test_units_of_all_spellings(answer, replies):
    assert [reply for reply in replies if said(reply, answer) is not True] == []


@pytest.mark.parametrize(
    ("answer", "replies"),
    [
        ("5 cm", [r"5\text{ nm}", r"5\text{ inches}", r"5\text{ apples}", r"5\text{ cm}^2"]),
        ("5 minutes", [r"5\text{ nanoseconds}", r"5\text{ decades}"]),
        ("5 hours", [r"5\text{ decades}", r"5\text{ apples}", r"5\text{ min}"]),
        ("5 dollars", [r"5\text{ rupees}", r"5\text{ yen}", r"5\text{ euros}", r"5\text{ cents}", r"5\text{ books}"]),
        ("5 weeks", [r"5\text{ fortnights}"]),
        ("5 years", [r"5\text{ centuries}", r"5\text{ millennia}"]),
        ("5 miles", [r"5\text{ furlongs}", r"5\text{ km}"]),
        (r"5\text{ m}", [r"5\ \mu\text{m}", r"5\text{ mm}", r"5\text{ m}^2", r"5\ \mathrm{m^{-1}}", r"5\text{ m/s}"]),
        (r"5\text{ m/s}", [r"5\,\mathrm{m\,s^{-2}}", r"5\text{ km/h}", r"5\ \frac{\text{s}}{\text{m}}", r"5\,\mathrm{m\,s}"]),
        (r"5\text{ kJ}", [r"5\text{ J}", r"5\text{ kW}"]),
        (r"5\ \Omega", [r"5\ \mathrm{k\Omega}", r"5\text{ V}"]),
        (r"5\text{ J/(kg K)}", [r"5\text{ J/kg}", r"5\,\mathrm{J\,kg^{-1}\,K}"]),
        ("20°C", ["20°F", r"20\text{ K}", r"21^\circ\text{C}", r"20^\circ"]),
        ("5", [r"5\text{ tenths}", r"5\text{ hundredths}", r"5\text{ quintillion}", r"5\text{ lakh}", r"5\text{ crore}",
               r"5\text{ factorial}", r"5\text{ doubled}", r"5\text{ tripled}", r"5\text{ below zero}", r"5\text{ squared}",
               r"5\text{ times the original}", r"5\text{ times as many}", r"5\text{ times larger}", r"5\text{ less than } x",
               r"5\text{ more than twice}", r"5\text{ millions}", r"5\ \text{m}^{x}", r"5\ \text{m}^{12}", r"5\mu", r"5\Omega",
               r"\mathrm{5^{2}}", r"5\text{ (or 6)}", r"5(\text{not})", r"5\ \frac{\text{m}}{2}", "5 m", "5 C", "5'"]),
        ("3 apples", [r"3\text{ pears}", r"4\text{ apples}"]),
    ],
)  # fmt: skip
def test_units_that_contradict_and_words_that_change_the_number(answer, replies):
    assert [reply for reply in replies if said(reply, answer) is not False] == []


# ---- approximations, and equations that state the value of what was asked ---------------------------------------------


@pytest.mark.parametrize(
    ("answer", "reply", "right"),
    [
        ("3.14", r"\approx 3.14", True), ("3.14", r"\simeq 3.14", True), ("≈ 3.14", "3.14", True), (r"\pi", r"\approx 3.14", False),
        (r"\pi", r"\pi\approx 3.14", True), ("2/3", r"\frac23\approx 0.67", True), ("2/3", r"\frac23\approx 0.66", True),
        ("2/3", r"\frac23\approx 0.76", False), ("1/3", r"x=\frac13\approx0.33", True), ("5", r"5\approx 6", False),
        ("6", r"5\approx 6", False), ("7", r"7\approx 8", False), ("5", r"5\approx 5.0", True),
        ("100003", r"100003\approx 100000", True),
        (r"\sqrt2", r"\sqrt2\approx 1.41421", True), (r"\sqrt2", r"\sqrt2\approx 1.73", False), ("3", r"\approx", False),
        ("3", r"\approx 3\approx 4", False),
    ],
)  # fmt: skip
def test_approximations(answer, reply, right):
    assert said(reply, answer) is right


@pytest.mark.parametrize(
    ("question", "reply", "right"),
    [
        ("What is the value of $x+y$?", r"**Final Answer:** \(x + y = 42\).", True), ("Find a+b.", r"\boxed{a+b=42}", True),
        ("Find $a+b$ if $a=2$.", r"\boxed{a + b = 42}", True), (r"Find $\cos\angle RPS$.", r"So $\cos \angle RPS = 42$.", True),
        (r"Compute $\cos \theta$.", r"\boxed{\cos\theta=42}", True), ("Find $|z|$.", r"\boxed{|z|=42}", True),
        (r"Find the value of $\frac{a}{b}$.", r"\boxed{\frac{a}{b}=42}", True), ("Compute $E[X]$.", r"\boxed{E[X]=42}", True),
        (r"Determine $\gcd(a, b)$.", r"\boxed{\gcd(a,b)=42}", True), (r"Evaluate $\int_0^1 f$.", r"\boxed{\int_0^1 f=42}", True),
        ("What is the value of $x+y$?", r"\boxed{x+y=43}", False), ("Find $a+b+c$.", r"\boxed{a+b=42}", False),
        ("If $a+b=42$, find $a$.", r"\boxed{a+b=42}", False), ("Find $2(a+b)$.", r"\boxed{a+b=42}", False),
        ("Find $a+b^2$.", r"\boxed{a+b=42}", False), ("Find $x$ if $2x=42$.", r"\boxed{2x=42}", False),
        ("What is $3x+y$?", r"\boxed{x+y=42}", False), ("Find $x+y_1$.", r"\boxed{x+y=42}", False),
        ("What is $x+y$?", r"\boxed{x+y=42=43}", False), ("What is $x+y$?", r"\boxed{x+y\le 42}", False),
        ("", r"\boxed{a+b=42}", False),
    ],
)  # fmt: skip
def test_an_equation_states_the_value_of_what_the_question_asks_for(question, reply, right):
    assert math().check(reply, "42", question).correct is right
