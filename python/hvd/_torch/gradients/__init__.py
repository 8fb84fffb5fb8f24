# SPDX-License-Identifier: Apache-2.0
"""How an optimizer's gradients travel. `step` has them all, of one step; what travels while
backward goes on is `early`'s, by `reduction`. `layout`, which is pure, says what that is;
`agreement` is what the ranks tell one another about it, once a step.

Threads: those of the optimizer, one at a time. The calls that backward makes on threads of its own
come one after another.
"""
