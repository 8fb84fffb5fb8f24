// SPDX-License-Identifier: Apache-2.0
// The ranks' progress bars on a terminal: one row each below all else, drawn anew in place. Pure:
// it appends bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hvd::cli {

// A bar's text fit for one row: without what moves the cursor or erases. Colours stay.
std::string BarRow(std::string_view text);

// Whether a terminal shows nothing of it: blanks, and what erases. Programs clear their bars so.
bool IsBlankBar(std::string_view text);

class BarBlock {
 public:
  // Over what is drawn. The terminal cuts rows that are wider than it. No row: erases.
  void Draw(const std::vector<std::string>& rows, std::string* out);
  // The cursor stands where the first row began. Nothing, if nothing is drawn.
  void Erase(std::string* out);
  // The cursor has been moved by others: what is drawn stays there.
  void Forget() { rows_ = 0; }
  bool drawn() const { return rows_ > 0; }

 private:
  void Return(std::string* out) const;

  size_t rows_ = 0;  // the cursor is in the last one
};

}  // namespace hvd::cli
