r"""Replies labelled right or wrong for a gold answer, written for this project, to measure verifiers of mathematics by.

Each group has a category, a gold answer, answers that are right and answers that are wrong: mostly near misses. What is right
follows from mathematics; where conventions differ (is 50 right for 50%, does 3:4 answer 3/4), no pair is taken. A reply is the
answer in one of some frames, chosen by its text. Sources: "hand", written one by one; "rule", made from a number by rules;
"gold", the gold answer itself; "reported", wrong pairs that users reported of other verifiers. Half of the groups, by a checksum
of the gold answer, are held out: nothing was tuned on them.
"""

from __future__ import annotations

import zlib
from fractions import Fraction
from typing import NamedTuple

Group = tuple[str, str, list[str], list[str]]


class Labelled(NamedTuple):
    response: str
    answer: str
    correct: bool
    category: str
    source: str
    held_out: bool


NUMBERS: list[Group] = [
    ("number", "18", ["18", "18.0", "$18", "18 dollars", "x = 18", r"\frac{36}{2}"], ["-18", "81", "17", "1.8", "180", "19"]),
    ("number", "1234567", ["1,234,567", r"1{,}234{,}567", r"1\,234\,567"], ["1,234,576", "123,456", "1.234567", "12345678"]),
    ("number", "0.75", ["3/4", r"\frac{3}{4}", "0.750", "75\\%", ".75"], ["0.57", r"\frac{4}{3}", "7.5", "-0.75", "0.7"]),
    (
        "number",
        r"\frac{7}{3}",
        ["7/3", r"2\frac{1}{3}", r"\dfrac{14}{6}", r"\frac73"],
        [r"\frac{3}{7}", "2.33", r"2\frac{2}{3}", r"-\frac{7}{3}"],
    ),
    ("number", "-5", ["-5", r"-\frac{10}{2}", "−5", "x=-5"], ["5", "-4", "-6", r"\frac{1}{-5}"]),
    (
        "number",
        "3200000",
        [r"3.2 \times 10^6", "3,200,000", "3.2 million", "3.2e6"],
        [r"3.2 \times 10^5", "320000", r"3.2 \times 10^{-6}", r"32 \times 10^6"],
    ),
    (
        "number",
        "0.00045",
        [r"4.5 \times 10^{-4}", "0.00045", r"\frac{9}{20000}"],
        [r"4.5 \times 10^{4}", "0.0045", r"4.5 \times 10^{-5}", "0.000045"],
    ),
    ("number", r"\frac{1}{3}", ["1/3", r"0.\overline{3}", r"\frac{2}{6}"], ["0.333", "0.3", "3", r"\frac{1}{30}", "0.33"]),
    (
        "number",
        r"\frac{5}{9}",
        [r"\dfrac{5}{9}", "5/9", r"\frac{10}{18}", r"0.\overline{5}"],
        [r"\frac{4}{9}", r"\frac{9}{5}", "0.55", r"\frac{5}{8}", r"\frac{5}{9}+1"],
    ),
    ("number", r"2\frac{1}{2}", ["2.5", r"\frac{5}{2}", "2 1/2"], [r"\frac{2}{5}", "1", r"2\frac{1}{3}", "21/2"]),
    ("number", "1023", ["1023", r"2^{10}-1", "1,023"], [r"2^{10}", r"2^{10}+1", "1024", "1032", r"2^{9}-1"]),
    (
        "number",
        "120",
        ["5!", "120", r"\binom{10}{3}", r"5 \cdot 4 \cdot 3 \cdot 2"],
        ["4!", "6!", r"\binom{10}{4}", "12", r"5^{2}!"],
    ),
    ("number", "10000", ["10{,}000", "10^4", "10,000"], ["10^5", "1000", "100,000", "10^{-4}"]),
    ("number", "0", ["0", "0.0", r"\frac{0}{5}", "-0"], ["1", "10", r"\frac{5}{0}", r"\emptyset", "O"]),
    ("number", "42", ["The total is 42.", "6*7=42", "42.", "**42**"], ["6*7=43", "24", "4.2", "42 or 43", "about 41"]),
    ("number", "2027091", ["2,027,091", "2027091.00"], ["2,027,090", "2027190", "20270910", "2.027091"]),
    ("number", "1/64", [r"2^{-6}", r"\frac{1}{64}", r"4^{-3}", "0.015625"], ["64", r"2^{6}", r"2^{-5}", r"-2^{6}", "0.0156"]),
    ("number", r"\frac{-3}{4}", [r"-\frac{3}{4}", "-0.75", r"\frac{3}{-4}"], [r"\frac{3}{4}", r"-\frac{4}{3}", r"\frac{-3}{-4}"]),
    ("number", "5.5", [r"\frac{11}{2}", r"5\frac{1}{2}", "5.50"], ["55", "5.05", r"\frac{5}{2}", r"\frac{2}{11}"]),
    ("number", "100", ["100", r"10^2", "1e2"], ["99", "101", "10", "1000", "-100", "1%"]),
]

WORD_PROBLEMS: list[Group] = [
    (
        "gsm8k",
        "She eats 3 and bakes 4, so 16 - 3 - 4 = 9 are left. 9 * 2 = 18.\n#### 18",
        [
            "She sells 16 - 3 - 4 = 9 eggs a day.\n9 * 2 = $18.\nThe answer is 18.",
            "16-3-4=9, and 9*2=18\n#### 18",
            "So she makes $18 every day.",
            "Therefore the final answer is \\boxed{18} dollars.",
            "**Answer:** $18",
        ],
        [
            "She sells 16 - 3 = 13 eggs.\n13 * 2 = 26\nThe answer is 26.",
            "9*2=18, then minus 1 is 17\n#### 17",
            "Answer: 18 or 26",
            "The answer is -18.",
            "The answer is 1.8",
            "I do not know, but it is not 18",
        ],
    ),
    (
        "gsm8k",
        "#### 70000",
        [
            "He made a profit of 200000-80000-50000=$70,000",
            "The answer is $70,000.",
            "\\boxed{70{,}000}",
            "#### 70,000",
            "Answer: 70000 dollars",
        ],
        [
            "The answer is $7,000.",
            "He made $120,000-$50,000 = $70,000 first and then lost it: $0",
            "#### 700000",
            "\\boxed{70}",
            "The answer is $70,001.",
        ],
    ),
    (
        "gsm8k",
        "#### 540",
        [
            "He runs 3*60=180 meters a time and 180*3=540 meters a week.\nThe answer is 540 meters.",
            "\\boxed{540}",
            "\\boxed{540 \\text{ meters}}",
            "So the total is 540.",
        ],
        ["3*60=180\nThe answer is 180 meters.", "\\boxed{54}", "So the total is 5400.", "The answer is 540^2.", "\\boxed{-540}"],
    ),
    (
        "gsm8k",
        "#### 2.50",
        ["Each costs $2.50.", "The answer is 2.5", "\\boxed{\\$2.50}", "\\boxed{\\frac{5}{2}}", "#### 2.50"],
        ["Each costs $25.0.", "The answer is 250", "\\boxed{\\$2.05}", "The answer is 2.55", "#### -2.50"],
    ),
    (
        "gsm8k",
        "#### 15",
        [
            "It takes 45/3=15 minutes.",
            "Let x be the number. 3x = 45, so x = 15. The answer is x = 15.",
            "The answer is 15 because 15*3 = 45.",
            "The answer is: 15",
        ],
        [
            "It takes 45/3=14 minutes.",
            "3x = 45. The answer is 3x.",
            "The answer is 51 because 15*3 = 45.",
            "The answer is: 15, 16",
            "<think>It may be 15.</think> I give up.",
        ],
    ),
    (
        "gsm8k",
        "#### 1430",
        [
            "The total is 1,430 calories.",
            "\\[\\boxed{1430}\\]",
            "The answer is 1,430.",
            "<think>\\boxed{3}? no.</think>\n\\boxed{1430}",
        ],
        [
            "The total is 1,403 calories.",
            "\\[\\boxed{1,340}\\]",
            "The answer is 1.43.",
            "<think>\\boxed{1430}</think>\n\\boxed{3}",
            "1430 + 1 = 1431",
        ],
    ),
    (
        "gsm8k",
        "#### 25",
        ["The answer is 25.", "5*5 = 25", "\\boxed{5^2}", "\\boxed{25.00}"],
        ["The answer is 5.", "5+5 = 10", "\\boxed{2^5}", "\\boxed{25.01}", "25, no, 24"],
    ),
]

ALGEBRA: list[Group] = [
    (
        "expression",
        "x^2+2x+1",
        ["(x+1)^2", "1+2x+x^2", "x^{2}+2x+1", "x(x+2)+1"],
        ["x^2+2x-1", "x^2-2x+1", "(x-1)^2", "y^2+2y+1", "x^2+2x", "x^2+x+1"],
    ),
    (
        "expression",
        r"\frac{x+2}{7}",
        [r"\frac{x}{7}+\frac{2}{7}", r"\frac{1}{7}(x+2)", "(x+2)/7", r"\frac{2x+4}{14}"],
        [r"\frac{x}{7}+2", "x+2/7", r"\frac{x-2}{7}", r"\frac{7}{x+2}", r"\frac{y+2}{7}"],
    ),
    ("expression", "3x^2y", ["3yx^2", r"3 \cdot x^2 \cdot y", "3x^{2}y", "(3y)x^2"], ["3xy^2", "3x^2", "x^2y", "-3x^2y", "3x^2+y"]),
    (
        "expression",
        r"\frac{1}{x-1}",
        [r"(x-1)^{-1}", r"-\frac{1}{1-x}", r"\frac{x+1}{x^2-1}"],
        [r"\frac{1}{1-x}", r"\frac{1}{x+1}", "x-1", r"\frac{1}{x}-1"],
    ),
    ("expression", "2a^2-ab-b^2", ["(2a+b)(a-b)", "-b^2-ab+2a^2"], ["(2a-b)(a+b)", "2a^2-ab+b^2", "2a^2-ab", "2b^2-ab-a^2"]),
    ("expression", "(x-3)(x+3)", ["x^2-9", "(x+3)(x-3)"], ["x^2+9", "(x-3)^2", "x^2-3", "9-x^2"]),
    (
        "expression",
        r"e^{2x}",
        [r"(e^x)^2", r"\exp(2x)", r"e^x \cdot e^x", r"\mathrm{e}^{2x}"],
        [r"e^{x^2}", r"2e^x", r"e^{-2x}", r"e^{2}x", r"e^{2y}"],
    ),
    (
        "expression",
        r"2^{n+1}",
        [r"2 \cdot 2^n", r"2^n+2^n", r"4 \cdot 2^{n-1}"],
        [r"2^n+1", r"2^{n-1}", r"(n+1)^2", r"2^{m+1}", r"2^{2n}"],
    ),
    (
        "expression",
        r"\frac{n(n+1)}{2}",
        [r"\frac{n^2+n}{2}", r"\binom{n+1}{2}", r"\sum_{k=1}^{n} k"],
        [r"\frac{n(n-1)}{2}", r"\binom{n}{2}", r"n(n+1)", r"\frac{n(n+1)}{2}+1"],
    ),
    ("expression", "x^{10}-1", ["(x^5-1)(x^5+1)", "-1+x^{10}"], ["x^{10}+1", "(x-1)^{10}", "x^{100}-1", "x^{10}"]),
    (
        "expression",
        r"\frac{a}{b}+\frac{c}{d}",
        [r"\frac{ad+bc}{bd}", r"a/b+c/d"],
        [r"\frac{a+c}{b+d}", r"\frac{ac}{bd}", r"\frac{ad-bc}{bd}"],
    ),
    (
        "expression",
        r"\sqrt{x+1}",
        [r"(x+1)^{1/2}", r"\sqrt{1+x}", r"\frac{x+1}{\sqrt{x+1}}"],
        [r"\sqrt{x}+1", r"\sqrt{x-1}", r"\sqrt[3]{x+1}", r"-\sqrt{x+1}"],
    ),
    ("expression", "-34x-45y+20z", ["20z-34x-45y", "-(34x+45y-20z)"], ["34x+45y-20z", "-34x-45y-20z", "-34x+45y+20z"]),
    (
        "expression",
        r"36x\sqrt{35x}",
        [r"36\sqrt{35}x^{3/2}", r"36 x \sqrt{35 x}"],
        [r"36x\sqrt{35}", r"36\sqrt{35x}", r"35x\sqrt{36x}"],
    ),
    ("expression", r"|x-2|", ["|2-x|", r"\left|x-2\right|"], ["x-2", "|x|-2", "|x+2|", "2-x"]),
    ("expression", r"\frac{x^2-1}{x+1}", ["x-1", r"\frac{(x-1)(x+1)}{x+1}"], ["x+1", "1-x", "x^2-1"]),
    ("expression", "8x^3+27", ["(2x+3)(4x^2-6x+9)", "(2x)^3+3^3"], ["(2x+3)^3", "8x^3-27", "(2x+3)(4x^2+6x+9)"]),
    ("expression", r"\frac{2}{x}+3", [r"\frac{2+3x}{x}", r"2x^{-1}+3"], [r"\frac{2}{x+3}", r"\frac{2+3}{x}", r"2x+3"]),
]

CONSTANTS: list[Group] = [
    (
        "root",
        r"2\sqrt{2}",
        [r"\sqrt{8}", r"2 \cdot 2^{1/2}", r"\frac{4}{\sqrt{2}}", "2sqrt(2)", r"2\sqrt2"],
        [r"\sqrt{2}", r"2\sqrt{3}", "2.83", r"-2\sqrt{2}", r"\sqrt{4}", "4"],
    ),
    (
        "root",
        r"\frac{\sqrt{3}}{3}",
        [r"\frac{1}{\sqrt{3}}", r"\sqrt{\frac{1}{3}}", r"3^{-1/2}", r"\frac{\sqrt3}3"],
        [r"\frac{\sqrt{3}}{2}", r"\sqrt{3}", "0.577", r"\frac{3}{\sqrt{3}}", r"-\frac{\sqrt{3}}{3}"],
    ),
    (
        "root",
        r"1+\sqrt{2}",
        [r"\sqrt{2}+1", r"\frac{1}{\sqrt{2}-1}", r"\sqrt{3+2\sqrt{2}}"],
        [r"1-\sqrt{2}", r"\sqrt{2}-1", r"\sqrt{3}", "2.414", r"\sqrt{3-2\sqrt{2}}"],
    ),
    ("root", r"\sqrt{53}", [r"53^{1/2}", r"\sqrt{53.0}"], [r"\sqrt{35}", "7.28", r"\sqrt{53}+0.000001", r"\sqrt[3]{53}", "53"]),
    (
        "root",
        r"3\sqrt[3]{2}",
        [r"\sqrt[3]{54}", r"3 \cdot 2^{1/3}"],
        [r"3\sqrt{2}", r"\sqrt[3]{18}", r"2\sqrt[3]{3}", r"\sqrt[3]{2}"],
    ),
    (
        "root",
        r"\sqrt{2}+\sqrt{3}",
        [r"\sqrt{5+2\sqrt{6}}", r"\sqrt3+\sqrt2"],
        [r"\sqrt{5}", r"\sqrt{6}", r"\sqrt{3}-\sqrt{2}", r"\sqrt{5+2\sqrt{5}}"],
    ),
    ("root", "-2", [r"\sqrt[3]{-8}", r"-\sqrt{4}"], [r"\sqrt{4}", r"\sqrt[3]{8}", r"\sqrt{-4}", r"-\sqrt[4]{8}"]),
    ("pi", r"16\pi", [r"\pi \cdot 16", "16pi", r"4^2\pi", "16π"], ["16", r"8\pi", "50.27", r"\pi^{16}", r"16+\pi", r"-16\pi"]),
    (
        "pi",
        r"\frac{\pi}{6}",
        [r"\pi/6", r"\frac{1}{6}\pi", r"30^\circ"],
        [r"\frac{\pi}{3}", r"\frac{6}{\pi}", "0.5236", r"60^\circ", r"-\frac{\pi}{6}"],
    ),
    ("pi", r"4\pi+8", [r"4(\pi+2)", r"8+4\pi"], [r"4\pi-8", r"12\pi", r"4\pi", r"8\pi+4"]),
    (
        "e",
        r"1 - \frac{1}{\mathrm{e}}",
        [r"1-\frac{1}{e}", r"\frac{e-1}{e}", r"1-e^{-1}"],
        [r"1+\frac{1}{e}", r"1-e", r"\frac{1}{e}-1", r"\frac{e+1}{e}", "0.632"],
    ),
    ("e", "e^2-1", ["-1+e^2", "(e-1)(e+1)", r"\exp(2)-1"], ["e^2+1", "1-e^2", "e-1", "6.389", "e^{2-1}"]),
    ("log", r"3\ln 2", [r"\ln 8", r"\ln(8)", r"\ln 2+\ln 4"], [r"\ln 6", r"2\ln 3", r"\ln 9", r"\frac{\ln 2}{3}", "2.079"]),
    ("log", r"\log_2 3", [r"\frac{\ln 3}{\ln 2}", r"\log_4 9"], [r"\log_3 2", r"\ln 3", r"\log_2 4", "1.585"]),
    ("log", "3", [r"\log_2 8", r"\log_3 27", r"\log_{10} 1000"], [r"\log_2 6", r"\log_8 2", r"\log_3 9"]),
    (
        "trig",
        r"\frac{1}{2}",
        [r"\sin 30^\circ", r"\cos\frac{\pi}{3}", r"\sin\frac{5\pi}{6}"],
        [r"\sin 60^\circ", r"\sin 30", r"\cos 30^\circ", r"\tan 30^\circ"],
    ),
    (
        "trig",
        r"\frac{1+\sqrt{5}}{4}",
        [r"\cos 36^\circ", r"\cos\frac{\pi}{5}"],
        [r"\cos 72^\circ", r"\frac{1-\sqrt{5}}{4}", r"\frac{\sqrt{5}-1}{4}", "0.809"],
    ),
    (
        "trig",
        r"\tan^2 y+1",
        [r"\sec^2 y", r"\sec^2(y)", r"\frac{1}{\cos^2 y}"],
        [r"\sec^2 x", r"\sec y", r"\tan^2 y-1", r"\csc^2 y"],
    ),
    ("trig", r"\sin 2x", [r"2\sin x\cos x", r"\sin(2x)"], [r"2\sin x", r"\sin x\cos x", r"\cos 2x", r"\sin^2 x"]),
    (
        "trig",
        r"\arcsin\left(\frac{1}{7}\right)",
        [r"\sin^{-1}\frac{1}{7}", r"\arcsin(1/7)"],
        [r"\arccos\left(\frac{1}{7}\right)", r"\arcsin\left(\frac{1}{6}\right)", r"\sin\frac{1}{7}", "0.1433"],
    ),
    ("complex", "3-4i", ["-4i+3", "3 - 4i", r"(2-i)^2"], ["3+4i", "-3-4i", "4-3i", "5", "3-4"]),
    ("complex", "2i", [r"\sqrt{-4}", "0+2i", r"(1+i)^2"], ["-2i", "2", r"\sqrt{4}", "i^2", "2+i"]),
    ("complex", "14 - i", ["14.0 - 1.0i", "-i+14"], ["14+i", "14i-1", "13", "-14-i"]),
    (
        "factorial",
        r"\frac{10!}{3!}",
        [r"604800", r"10\cdot 9\cdot 8\cdot 7\cdot 6\cdot 5\cdot 4"],
        [r"\frac{10!}{4!}", r"\frac{9!}{3!}", "10!", "604801"],
    ),
    (
        "factorial",
        r"\frac{1}{100!}",
        [r"(100!)^{-1}", r"\frac{100}{100 \cdot 100!}"],
        [r"\frac{1}{101!}", r"\frac{1}{99!}", "0", r"\frac{1}{100}"],
    ),
    ("factorial", "2004!", [r"2004 \cdot 2003!", r"2004!"], ["2003!", "2005!", "2004", r"2004!+1"]),
    (
        "large",
        "2^{1000}",
        ["4^{500}", "2^{999}+2^{999}", r"1024^{100}"],
        ["2^{1001}", "2^{999}", "2^{1000}+1", "2^{1000}-1", r"\infty"],
    ),
    ("large", "7^{2004}", [r"49^{1002}", r"7 \cdot 7^{2003}"], ["7^{2003}", "7^{2004}-1", "2004^7", "0"]),
    ("large", "9^{9^9}", ["9^{387420489}", "3^{2 \\cdot 9^9}"], ["9^{9^9}+1", "9^{81}", "(9^9)^9", "9^{9^9-1}", "9^{9^{9^9}}"]),
]

SETS: list[Group] = [
    (
        "list",
        "1, 2, 3",
        ["3, 2, 1", r"1, 2, \text{ and } 3", "1,2,3", r"\{1,2,3\}", "x=1, x=2, x=3"],
        ["1, 2", "1, 2, 4", "1, 2, 3, 4", "123", "2, 3, 4", "6"],
    ),
    ("list", r"19, 46, \text{ and } 82", ["19, 46, 82", "82, 19 and 46"], ["21, 36, and 82", "19, 46", "19, 46, 28", "147"]),
    (
        "list",
        "x=2 \\text{ or } x=-3",
        ["-3, 2", "x=-3, 2", r"x \in \{2, -3\}", r"x=-3 \text{ or } x=2"],
        ["x=2", "x=-2, 3", "2, 3", "y=2, y=-3", "x = -3", r"x = \pm 2"],
    ),
    ("list", r"\pm 3", ["3, -3", r"-3 \text{ and } 3", r"x = \pm 3", r"\mp 3"], ["3", "-3", r"\pm 9", r"\pm 3, 0", "3, 3"]),
    (
        "list",
        r"1 \pm \sqrt{5}",
        [r"1+\sqrt{5}, 1-\sqrt{5}", r"\{1-\sqrt5, 1+\sqrt5\}", r"x = 1 \pm \sqrt{5}"],
        [r"1+\sqrt{5}", r"-1 \pm \sqrt{5}", r"1 \pm \sqrt{3}", r"\pm 1+\sqrt{5}"],
    ),
    (
        "list",
        r"\frac{-b \pm \sqrt{b^2-4ac}}{2a}",
        [r"\frac{-b+\sqrt{b^2-4ac}}{2a}, \frac{-b-\sqrt{b^2-4ac}}{2a}"],
        [r"\frac{b \pm \sqrt{b^2-4ac}}{2a}", r"\frac{-b \pm \sqrt{b^2+4ac}}{2a}", r"\frac{-b+\sqrt{b^2-4ac}}{2a}"],
    ),
    ("list", "5", ["5", "x=5", r"\{5\}"], ["5, 6", "5 or 6", "1, 2, 3, 4, 5", "not 5", r"\neq 5", "5, -5"]),
    (
        "set",
        r"\{1, 2\}",
        [r"\{2, 1\}", "1, 2", r"\{1,2,2\}", r"\left\{2,1\right\}"],
        [r"\{1, 3\}", r"\{1\}", r"\{-1, 2\}", "(2, 1)", r"\{1, 2, 3\}", "3"],
    ),
    ("set", r"\emptyset", [r"\varnothing", r"\{\}"], ["0", r"\{0\}", r"\mathbb{R}", r"\{\emptyset, 1\}"]),
    (
        "set",
        r"\{-1, \frac{1}{2}\}",
        [r"\{0.5, -1\}", r"\{\frac12,-1\}"],
        [r"\{1, \frac{1}{2}\}", r"\{-1, 2\}", r"\{-1, -\frac{1}{2}\}"],
    ),
    (
        "set",
        r"\{(1,2), (3,4)\}",
        [r"\{(3,4),(1,2)\}", "(1,2), (3,4)", "(3,4),(1,2)"],
        [r"\{(2,1), (3,4)\}", "(1,2)", "(1,2,3,4)", r"\{(1,2),(4,3)\}"],
    ),
    (
        "tuple",
        "(1,2)",
        ["(1, 2)", r"\left(1,2\right)", "(1.0, 2.0)", r"(\frac{2}{2}, 2)"],
        ["(2,1)", "(1,-2)", "(1,3)", "(1,2,3)", "3", "1"],
    ),
    (
        "tuple",
        r"\left(3, \frac{\pi}{2}\right)",
        [r"(3, \pi/2)", r"\left(3,\dfrac{\pi}{2}\right)", r"(r,\theta)=(3,\frac{\pi}{2})"],
        [r"\left(\frac{\pi}{2},3\right)", r"(3, \frac{\pi}{3})", r"(-3, \frac{\pi}{2})", r"(3, \frac{3\pi}{2})"],
    ),
    ("tuple", "(3,-2,5)", ["(3, -2, 5)", "(x,y,z)=(3,-2,5)"], ["(3,2,5)", "(-2,3,5)", "(3,-2)", "(5,-2,3)", "(3,-2,5,0)"]),
    (
        "tuple",
        "(-\\frac{1}{2}, \\frac{3}{4})",
        ["(-0.5, 0.75)", r"\left(\frac{-1}{2},\frac{3}{4}\right)"],
        [r"(\frac{1}{2}, \frac{3}{4})", r"(\frac{3}{4}, -\frac{1}{2})", r"(-\frac{1}{2}, \frac{4}{3})"],
    ),
    (
        "system",
        "x=1, y=2",
        ["y=2, x=1", r"x = 1 \text{ and } y = 2", r"\begin{cases} x=1 \\ y=2 \end{cases}"],
        ["x=2, y=1", "x=1", "x=1, y=-2", "x=1, z=2", "1, 1"],
    ),
    ("system", r"x+y=3, x-y=1", ["x-y=1, x+y=3", "y+x=3, x=y+1"], ["x+y=3, x-y=2", "x+y=3", "x+y=1, x-y=3"]),
]

INTERVALS: list[Group] = [
    (
        "interval",
        "[0,1)",
        [r"0 \le x < 1", r"[0, 1)", r"x \in [0,1)", r"\left[0,1\right)"],
        ["[0,1]", "(0,1)", "(0,1]", "[1,0)", r"0 < x < 1", "[0,2)"],
    ),
    (
        "interval",
        r"(-\infty, 3]",
        [r"x \le 3", r"3 \ge x", r"(-\infty,3]"],
        [r"(-\infty, 3)", r"x < 3", r"[3, \infty)", r"(\infty, 3]", r"(-\infty, -3]"],
    ),
    (
        "interval",
        r"(-\infty,-1)\cup(2,\infty)",
        [r"x<-1 \text{ or } x>2", r"(2,\infty)\cup(-\infty,-1)", r"x \in (-\infty,-1) \cup (2,+\infty)"],
        ["(-1,2)", r"(-\infty,-1]\cup[2,\infty)", r"(-\infty,1)\cup(2,\infty)", r"(2,\infty)", r"x<-1 \text{ and } x>2"],
    ),
    (
        "interval",
        "[2,5]",
        [r"2 \le x \le 5", r"[2, 5]", r"5 \ge x \ge 2"],
        ["(2,5)", "[2,5)", r"2 < x \le 5", "[2,6]", "[-2,5]", "2, 5"],
    ),
    (
        "interval",
        r"\left(\frac{1}{2}, \infty\right)",
        [r"x > \frac{1}{2}", r"(0.5,\infty)", "2x > 1"],
        [r"x \ge \frac{1}{2}", r"(2,\infty)", r"\left(-\frac{1}{2},\infty\right)", r"(-\infty, \frac{1}{2})"],
    ),
    (
        "interval",
        r"\mathbb{R} \setminus \{1\}",
        [r"(-\infty,1)\cup(1,\infty)", r"x \ne 1"],
        [r"\mathbb{R}", r"\{1\}", r"\mathbb{R} \setminus \{-1\}", r"x = 1"],
    ),
    (
        "interval",
        r"(-\infty,\infty)",
        [r"\mathbb{R}", r"(-\infty, +\infty)"],
        [r"(0,\infty)", r"[0,\infty)", r"\emptyset", r"\infty"],
    ),
    (
        "interval",
        "[-2, 0] \\cup [1, 3]",
        [r"[1,3]\cup[-2,0]", r"-2 \le x \le 0 \text{ or } 1 \le x \le 3"],
        ["[-2,3]", r"[-2,0) \cup [1,3]", r"[-2,0]\cap[1,3]", r"[-2,0]\cup(1,3]"],
    ),
    (
        "interval",
        r"m \ge \sqrt{2}",
        [r"m \in [\sqrt{2}, \infty)", r"[\sqrt2,+\infty)", r"\sqrt{2} \le m"],
        [r"m > \sqrt{2}", r"m \le \sqrt{2}", r"n \ge \sqrt{2}", r"m \ge 2", r"m \ge 1.41"],
    ),
    (
        "interval",
        "0 < x < 12.5",
        ["(0, 12.5)", r"(0,\frac{25}{2})", "12.5 > x > 0"],
        ["(0,12.5]", "[0,12.5]", "0 < y < 12.5", "(0, 12)", "0 < x < 125"],
    ),
    (
        "interval",
        r"[\frac{1}{3}, \frac{2}{3}] \cup \{1\}",
        [r"\{1\} \cup [\frac{1}{3},\frac{2}{3}]"],
        [r"[\frac{1}{3}, \frac{2}{3}]", r"[\frac{1}{3}, 1]", r"(\frac{1}{3}, \frac{2}{3}) \cup \{1\}"],
    ),
    ("inequality", "x+y>3", ["3<x+y", "2x+2y>6", "y>3-x"], [r"x+y \ge 3", "x+y<3", "x-y>3", "-x-y>3", "x+y>4"]),
    ("inequality", "a < b < c", ["a<b<c", "c>b>a"], ["a<b", "b<a<c", r"a \le b \le c", "a<c<b"]),
]

EQUATIONS: list[Group] = [
    (
        "equation",
        "y=2x+1",
        ["2x-y+1=0", "y = 1+2x", "y-2x=1", r"x=\frac{y-1}{2}", "4x-2y=-2"],
        ["y=2x-1", "y=-2x+1", "y=x+1", "y=2x", "2x+y+1=0", "x=2y+1"],
    ),
    (
        "equation",
        "3x-y+13=0",
        ["y=3x+13", "-3x+y=13", "3x-y=-13"],
        ["3x+4y+14=0", "3x+y+13=0", "3x-y-13=0", "3x-y+14=0", "x-3y+13=0"],
    ),
    (
        "equation",
        r"\frac{x^2}{4}+\frac{y^2}{3}=1",
        ["3x^2+4y^2=12", r"\frac{y^2}{3}+\frac{x^2}{4}=1"],
        [r"\frac{x^2}{16}+\frac{y^2}{12}=1", r"\frac{x^2}{3}+\frac{y^2}{4}=1", r"\frac{x^2}{4}-\frac{y^2}{3}=1", "4x^2+3y^2=12"],
    ),
    (
        "equation",
        "(x-1)^2+(y-2)^2=9",
        ["x^2-2x+y^2-4y=4", "(y-2)^2+(x-1)^2=3^2"],
        ["(x+1)^2+(y-2)^2=9", "(x-1)^2+(y-2)^2=3", "(x-2)^2+(y-1)^2=9", "(x-1)^2-(y-2)^2=9"],
    ),
    (
        "equation",
        "2x+4y-3=0",
        [r"y = -\frac{1}{2}x + \frac{3}{4}", "4x+8y=6"],
        ["2x+4y+3=0", "2x-4y-3=0", r"y = \frac{1}{2}x + \frac{3}{4}", "4x+2y-3=0"],
    ),
    ("equation", "xy=1", [r"y=\frac{1}{x}", "1=xy", r"x=\frac{1}{y}"], ["xy=-1", "x=y", r"y=\frac{-1}{x}", "x+y=1"]),
    ("equation", "x=5", ["5", "5=x", "x = 5.0", r"x=\frac{10}{2}"], ["y=5", "x=-5", "x=6", "x>5", "x=5, 6", "x+1=5"]),
    (
        "equation",
        "f(x)=x^2-4",
        ["x^2-4", "f(x)=(x-2)(x+2)", "f(x) = -4+x^2"],
        ["f(x)=x^2+4", "g(x)=x^2+4", "f(x)=x^2", "f(x)=4-x^2", "f(y)=x^2+4"],
    ),
    ("equation", "y^2=4x", ["4x=y^2", r"x=\frac{y^2}{4}", "y^2-4x=0"], ["x^2=4y", "y^2=-4x", "y^2=2x", "y=4x", "y=2x"]),
    ("equation", "a_n=2n-1", ["2n-1", "a_n=2(n-1)+1", "a_n = -1+2n"], ["a_n=2n+1", "b_n=2n+1", "a_n=n-1", "a_n=2n", "a_n=1-2n"]),
    ("equation", "z=3+4i", ["3+4i", "z=4i+3"], ["z=3-4i", "z=-3+4i", "w=3-4i", "z=7"]),
]

MATRICES: list[Group] = [
    (
        "matrix",
        r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}",
        [
            r"\begin{bmatrix} 1 & 2 \\ 3 & 4 \end{bmatrix}",
            r"\begin{pmatrix}1&2\\3&4\end{pmatrix}",
            r"\left(\begin{array}{cc} 1 & 2 \\ 3 & 4 \end{array}\right)",
        ],
        [
            r"\begin{pmatrix} 1 & 3 \\ 2 & 4 \end{pmatrix}",
            r"\begin{pmatrix} 1 & 2 \\ 3 & -4 \end{pmatrix}",
            r"\begin{pmatrix} 1 & 2 & 3 & 4 \end{pmatrix}",
            "-2",
            r"\begin{pmatrix} 1 & 2 \\ 4 & 3 \end{pmatrix}",
        ],
    ),
    (
        "matrix",
        r"\begin{pmatrix} -7 \\ 16 \\ 5 \end{pmatrix}",
        [
            r"\begin{pmatrix}-7\\16\\5\end{pmatrix}",
            r"\mathbf{v} = \begin{pmatrix} -7 \\ 16 \\ 5 \end{pmatrix}",
            r"\begin{bmatrix} -7 \\ 16 \\ 5 \end{bmatrix}",
        ],
        [
            r"\begin{pmatrix} 7 \\ 16 \\ 5 \end{pmatrix}",
            r"\begin{pmatrix} 16 \\ -7 \\ 5 \end{pmatrix}",
            r"\begin{pmatrix} -7 \\ 16 \end{pmatrix}",
            r"\begin{pmatrix} -7 \\ 16 \\ 6 \end{pmatrix}",
        ],
    ),
    (
        "matrix",
        r"\begin{pmatrix} \frac{1}{2} & 0 \\ 0 & \frac{1}{2} \end{pmatrix}",
        [r"\frac{1}{2}\begin{pmatrix} 1 & 0 \\ 0 & 1 \end{pmatrix}", r"\begin{pmatrix} 0.5 & 0 \\ 0 & 0.5 \end{pmatrix}"],
        [
            r"\begin{pmatrix} 2 & 0 \\ 0 & 2 \end{pmatrix}",
            r"\begin{pmatrix} 0 & \frac{1}{2} \\ \frac{1}{2} & 0 \end{pmatrix}",
            r"\begin{pmatrix} 1 & 0 \\ 0 & 1 \end{pmatrix}",
        ],
    ),
    (
        "matrix",
        r"\begin{pmatrix} \cos\theta & -\sin\theta \\ \sin\theta & \cos\theta \end{pmatrix}",
        [r"\begin{bmatrix} \cos \theta & -\sin \theta \\ \sin \theta & \cos \theta \end{bmatrix}"],
        [
            r"\begin{pmatrix} \cos\theta & \sin\theta \\ -\sin\theta & \cos\theta \end{pmatrix}",
            r"\begin{pmatrix} \sin\theta & -\cos\theta \\ \cos\theta & \sin\theta \end{pmatrix}",
        ],
    ),
    (
        "matrix",
        r"\begin{pmatrix} x & 1 \\ 0 & x^2 \end{pmatrix}",
        [r"\begin{pmatrix} x & 1 \\ 0 & x \cdot x \end{pmatrix}"],
        [r"\begin{pmatrix} x & 1 \\ 0 & x \end{pmatrix}", r"\begin{pmatrix} y & 1 \\ 0 & y^2 \end{pmatrix}"],
    ),
]

UNITS: list[Group] = [
    (
        "unit",
        r"5 \text{ cm}",
        ["5", r"5\text{ cm}", r"5 \mathrm{cm}", "5 centimeters", "5.0 cm"],
        [r"5 \text{ m}", r"5 \text{ cm}^2", "50 cm", r"5 \text{ mm}", "6 cm"],
    ),
    (
        "unit",
        r"36 \text{ cm}^2",
        ["36", r"36 \text{ square centimeters}", r"36\text{ cm}^{2}"],
        [r"36 \text{ cm}", r"36 \text{ m}^2", r"6 \text{ cm}^2", r"36 \text{ cm}^3"],
    ),
    (
        "unit",
        r"90^\circ",
        ["90", r"90^{\circ}", "90 degrees", r"90 \text{ degrees}", r"\frac{\pi}{2}"],
        [r"9^\circ", r"180^\circ", r"\pi", "-90", r"45^\circ"],
    ),
    (
        "unit",
        r"60 \text{ miles per hour}",
        ["60", "60 mph", r"60 \text{ miles/hour}"],
        [r"60 \text{ km}", "6 mph", r"60 \text{ miles}", r"60 \text{ hours}"],
    ),
    ("unit", r"\$12.50", ["12.5", r"\$12.5", "12.50 dollars", r"\$12.50"], [r"12.50 \text{ cents}", r"\$12.05", r"\$125", "1250"]),
    ("unit", "7 days", ["7", "7 days", "seven = 7"], ["7 hours", "7 weeks", "6 days", "70 days"]),
    ("percent", r"25\%", ["25%", "0.25", r"\frac{1}{4}", "25 percent", r"25\%"], [r"2.5\%", r"75\%", "4", r"0.25\%", r"52\%"]),
    ("percent", "0.08", [r"8\%", "0.080", r"\frac{2}{25}"], ["8", r"80\%", r"0.08\%", "0.8"]),
]

WORDS: list[Group] = [
    (
        "words",
        r"\text{east}",
        ["east", "East", r"\text{East}", r"\textbf{east}"],
        ["west", "not east", r"\text{east or west}", "northeast", "eats"],
    ),
    ("words", "Evelyn", [r"\text{Evelyn}", "evelyn", "Evelyn"], ["Evan", r"\text{Briana}", "Evelyn or Briana", "Eve"]),
    ("words", r"\text{even}", ["even", r"\text{Even}"], ["odd", r"\text{neither}", "not even", "even, odd"]),
    ("words", "no solution", [r"\text{no solution}", "No solution"], ["solution", "0", "one solution", "no"]),
    (
        "choice",
        "B",
        ["B", "(B)", r"\text{(B)}", r"\textbf{(B)}\ 42", "B."],
        ["A", "A or B", "A, B, C, D", "(C)", "not B", "AB", "(A) or (B)"],
    ),
    ("choice", "(D)", ["D", r"\text{D}", "(D)", "(D) 17"], ["(C)", "C or D", "(A), (B), (C), (D)", "E", "ABCD"]),
    ("base", "2516_8", ["2516_8", "2516_{8}"], ["2516_9", "2615_8", "1358_8", "251_8"]),
    ("base", "1011_2", ["1011_{2}", "1011_2"], ["1101_2", "1011_3", "111_2", "10111_2"]),
    ("ratio", "3:4", ["3:4", "3 : 4", "6:8"], ["4:3", "3:5", "3:4:5", "34", "-3:4"]),
    ("time", "12:00", ["12:00", "12:00"], ["1:00", "12:30", "0:12", "2:00"]),
    ("time", r"3:45 \text{ pm}", [r"3:45\text{ pm}", "3:45"], ["3:54", "4:45", r"3:45 \text{ am}", "15:43"]),
    (
        "degenerate",
        r"\frac{1}{2}",
        [r"\frac12", r"\frac{1}2", r"\tfrac{1}{2}", r"\frac{{1}}{{2}}"],
        [r"\frac{1}{}", r"\frac{1}", r"\frac{}{2}", r"\frac{1}{2", r"\frac{2}{1}", r"\frac", r"\frac{1}{2}\frac{1}{2}"],
    ),
    (
        "degenerate",
        r"\sqrt{2}",
        [r"\sqrt2", r"\sqrt{{2}}", r"\sqrt[2]{2}"],
        [r"\sqrt{}", r"\sqrt", r"\sqrt[2]{}", r"\sqrt{2", r"2\sqrt{}", r"\sqrt{2}{3}"],
    ),
    ("degenerate", "4", ["{4}", "((4))", r"\left(4\right)", "4;"], [r"4\sqrt(2)", "4(", "4 4", "4..5", r"4\foo", "=4=5", ""]),
]

REPORTED: list[Group] = [
    ("near", r"\frac{1}{2004!}", [], [r"\frac{1}{2006!}"]),
    ("near", r"\frac{1}{2^{99}}", [], [r"\frac{1}{2^{98}}"]),
    ("near", "n=2, 3, 4", [], ["n=1, 2, 3"]),
    ("near", "D = (0, 1)", [], ["D = (0, 1.5)"]),
    ("near", r"F_n = \sum_{k=0}^{n-1} F_k F_{n-k-1}", [], [r"F_n = \sum_{k=0}^{n-2} F_k F_{n-k-2}"]),
    ("near", r"\frac{2^{2005}+1}{3 \cdot 2^{2006}}", [], [r"\frac{1}{3 \cdot 2^{2006}}"]),
    ("near", r"\pm 2021", [], ["2021"]),
    ("near", r"1, 2, \ldots, n", [], [r"1, 3, 5, \ldots, 2n-1"]),
    ("near", r"1:2:3:\ldots", [], [r"1:4:9:\ldots"]),
    ("near", r"1 + \frac{1}{\mathrm{e}}", [], [r"1 - \frac{1}{\mathrm{e}}"]),
    ("near", "3*x-1*y+13=0", ["y=3x+13"], ["3x + 4y + 14=0"]),
    ("near", "x^2/4 + y^2/3 = 1", [], ["x^2/16 + y^2/12 = 1"]),
]

FRAMES = (
    r"\boxed{%s}", r"Thus $\boxed{%s}$.", "The answer is $%s$.", "We get\n\\[\n\\boxed{%s}\n\\]\nas claimed.", "Final answer: $%s$",
    r"So the answer is \(%s\).",
)  # fmt: skip


def framed(text: str) -> str:
    """A reply that ends on the answer; prose, prices and what must stand as it is are only boxed, or left alone."""
    whole = any(
        mark in text for mark in ("boxed", "nswer", "####", "\n", "<think>", "day.", "total", "each", "Each", "takes", "profit")
    )
    if whole or text.startswith("**") or text in ("25, no, 24", "5*5 = 25", "5+5 = 10", "1430 + 1 = 1431"):
        return text
    frames = FRAMES if not set("$%") & set(text.replace(r"\$", "").replace(r"\%", "")) else FRAMES[:2]
    return frames[zlib.crc32(text.encode()) % len(frames)] % text


def by_rule() -> list[Group]:
    """Numbers in other forms, and numbers that are a sign, one, a digit or a power of ten away."""
    groups: list[Group] = []
    for n in (7, 36, 84, 125, 263, 960, 1458, 4096, 30030, 765432):
        swapped = str(n)[:-2] + str(n)[:-3:-1] if n > 9 and str(n)[-1] != str(n)[-2] else str(n + 2)
        right = [f"{n:,}", f"{n}.0", rf"\frac{{{2 * n}}}{{2}}", rf"{n} \text{{ units}}"]
        groups.append(("number", str(n), right, [str(-n), str(n + 1), str(n - 1), swapped, str(10 * n), f"{n}.1"]))
    for above, below in ((1, 8), (3, 16), (7, 20), (9, 4), (-11, 8), (22, 7), (101, 99), (2, 15)):
        value = Fraction(above, below)
        other = value + Fraction(1, below)
        right = [f"{above}/{below}", rf"\frac{{{3 * above}}}{{{3 * below}}}", rf"\dfrac{{{above}}}{{{below}}}"]
        wrong = [
            rf"\frac{{{below}}}{{{above}}}",
            rf"\frac{{{-above}}}{{{below}}}",
            f"{other.numerator}/{other.denominator}",
            str(above + below),
        ]
        groups.append(("number", rf"\frac{{{above}}}{{{below}}}", right, wrong))
    for a, b in ((2, 3), (-1, 4), (5, -2), (7, 1)):
        right = [f"x^2{-(a + b):+}x{a * b:+}", f"(x{-b:+})(x{-a:+})"]
        wrong = [f"x^2{a + b:+}x{a * b:+}", f"x^2{-(a + b):+}x{-a * b:+}", f"(x{a:+})(x{b:+})", f"x^2{-(a + b):+}x{a * b + 1:+}"]
        groups.append(("expression", f"(x{-a:+})(x{-b:+})", right, wrong))
    return groups


def held_out(answer: str) -> bool:
    return zlib.crc32(answer.encode()) % 2 == 1


def pairs() -> list[Labelled]:
    by_hand = (*NUMBERS, *WORD_PROBLEMS, *ALGEBRA, *CONSTANTS, *SETS, *INTERVALS, *EQUATIONS, *MATRICES, *UNITS, *WORDS)
    found = []
    for source, groups in (("hand", by_hand), ("rule", by_rule()), ("reported", REPORTED)):
        for category, answer, right, wrong in groups:
            for texts, correct in ((right, True), (wrong, False)):
                found += [Labelled(framed(text), answer, correct, category, source, held_out(answer)) for text in texts]
            stated = answer.rpartition("#### ")[2]
            itself = [rf"\boxed{{{stated}}}", f"Working it out step by step, we find\n\\[ \\boxed{{{stated}}}. \\]"]
            found += [Labelled(text, answer, True, category, "gold", held_out(answer)) for text in itself]
    return list({(pair.response, pair.answer, pair.correct): pair for pair in reversed(found)}.values())[::-1]
