"""Mathematical answers: parsed from LaTeX or plain text, and compared exactly.

    text, layout                   remove clutter, split into tokens, and split these at signs and brackets
    trees, expressions             tokens to trees of plain tuples
    kinds, answers, reading        kinds of answers (value, several, tuple, set, matrix, words), and how they are parsed
    relations, inequalities        equations, inequalities, memberships
    spans, matrices                sets of real numbers; sums, products and powers of matrices
    values, units                  an expression with its unit, percent sign or currency
    parts, decimals, choices       parts (a), (b) of a question; decimal commas; letters of multiple choice
    polynomials, powers, exact     trees to normal forms, which decide most cases
    items, compare                 which items belong together; whether two answers are equal, different, or not yet known
    numeric, symbolic              the cases that need computer algebra, in a worker process

A tree is ("num", p, q) | ("sym", name) | ("const", "pi" | "e" | "i" | "inf") | ("add", ...) | ("mul", ...)
| ("pow", base, exponent) | ("root", degree, of) | ("fn", name, ...). It is plain data; nothing from a reply is ever executed.
"""
