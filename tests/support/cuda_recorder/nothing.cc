// SPDX-License-Identifier: Apache-2.0
// A library of nothing: only its name counts.
