"""Mathematical answers: read from LaTeX or plain text, and compared exactly.

    text, layout                   clutter taken off, cut into tokens, and these at signs and brackets
    trees, expressions             tokens to trees of plain tuples
    kinds, answers, reading        what an answer is: a value, several, a tuple, a set, a matrix, words
    relations, spans, units        equations and inequalities; sets of real numbers; what is written behind a number
    choices                        letters of multiple choice
    polynomials, powers, exact     trees to normal forms, which decide the common cases
    compare                        two answers: the same, different, or not yet known
    numeric, symbolic              what only computer algebra decides, in a process of its own

A tree is ("num", p, q) | ("sym", name) | ("const", "pi" | "e" | "i" | "inf") | ("add", ...) | ("mul", ...)
| ("pow", base, exponent) | ("root", degree, of) | ("fn", name, ...). It is plain data, and nothing here is ever run as a program.
"""
