// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace millrace::inspect {

/// Columns of text, all but the last aligned right.
class text_table {
 public:
  explicit text_table(std::vector<std::string> names) { add(std::move(names)); }

  void add(std::vector<std::string> row) {
    widths_.resize(std::max(widths_.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], row[i].size());
    rows_.push_back(std::move(row));
  }

  std::string text() const {
    std::string out;
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        const bool is_last = i + 1 == row.size();
        out += is_last ? row[i] : fmt::format("{:>{}}  ", row[i], widths_[i]);
      }
      while (out.ends_with(' ')) out.pop_back();
      out += '\n';
    }
    return out;
  }

 private:
  std::vector<std::size_t> widths_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace millrace::inspect
