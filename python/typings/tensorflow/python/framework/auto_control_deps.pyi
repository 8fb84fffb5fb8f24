# SPDX-License-Identifier: Apache-2.0
MUST_RUN_ORDER_INSENSITIVE_STATEFUL_OPS: frozenset[str]
