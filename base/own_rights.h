// SPDX-License-Identifier: Apache-2.0
// Whether a program runs with rights that who started it does not have.
#pragma once

namespace hvd {

// set-user-ID, set-group-ID or file capabilities: hvdrun and hvdd run others' commands and write
// where they are told, so with borrowed rights they refuse to run.
bool HasBorrowedRights();

inline constexpr char kBorrowedRightsWords[] =
    "runs set-user-ID, set-group-ID or with file capabilities, and anybody could run anything with "
    "those rights; take them from it (chmod ug-s, setcap -r)";

}  // namespace hvd
