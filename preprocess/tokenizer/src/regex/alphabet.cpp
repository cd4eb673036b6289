// SPDX-License-Identifier: Apache-2.0
#include "regex/alphabet.hpp"

#include <algorithm>
#include <optional>

#include "regex/pattern_tree.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {

// A range of code points that all belong to the same sets.
struct symbol_run {
  std::uint32_t begin;
  std::uint32_t symbol = 0;
};

namespace {

std::vector<symbol_run> runs_between(const std::vector<std::vector<std::uint32_t>>& bounds) {
  std::vector<std::uint32_t> begins{0};
  for (const auto& each : bounds) begins.insert(begins.end(), each.begin(), each.end());
  std::ranges::sort(begins);
  begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
  std::vector<symbol_run> runs;
  for (const std::uint32_t begin : begins) runs.push_back({begin});
  return runs;
}

// Returns one value per run: true if the set with these bounds contains the run.
std::vector<bool> members_of(const std::vector<std::uint32_t>& bounds,
                             const std::vector<symbol_run>& runs) {
  std::vector<bool> members;
  std::size_t passed = 0;
  for (const symbol_run& each : runs) {
    if (passed < bounds.size() && bounds[passed] == each.begin) ++passed;
    members.push_back(passed % 2 != 0);
  }
  return members;
}

// If a symbol has both runs that are members and runs that are not, gives its members a new symbol.
// @param count  number of symbols before the call
// @return number of symbols after the call
std::uint32_t split_symbols(std::vector<symbol_run>& runs, const std::vector<bool>& members,
                            std::uint32_t count) {
  std::vector<bool> has_others(count);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!members[i]) has_others[runs[i].symbol] = true;
  }
  std::vector<std::uint32_t> moved(count);  // 0: not moved, because 0 is never a new symbol
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::uint32_t& symbol = runs[i].symbol;
    if (!members[i] || !has_others[symbol]) continue;
    if (moved[symbol] == 0) moved[symbol] = count++;
    symbol = moved[symbol];
  }
  return count;
}

}  // namespace

alphabet::alphabet(std::span<const code_point_set> sets) {
  std::vector<std::vector<std::uint32_t>> bounds;
  for (const code_point_set& set : sets) bounds.push_back(set.bounds());
  std::vector<symbol_run> runs = runs_between(bounds);
  std::uint32_t count = 1;
  for (const auto& each : bounds) {
    count = split_symbols(runs, members_of(each, runs), count);
    if (count <= most_symbols) continue;
    throw pattern_error(
        "the character classes of the regular expression divide Unicode into more than " +
        std::to_string(most_symbols) + " distinct sets, which is not supported");
  }
  for (const auto& each : bounds) {
    const std::vector<bool> in = members_of(each, runs);
    symbols& found = members_.emplace_back();
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (in[i]) found.set(runs[i].symbol);
    }
  }
  make_pages(runs);
}

// Most pages (blocks of 256 code points) lie within one run. All such pages with the same symbol
// share one page.
void alphabet::make_pages(const std::vector<symbol_run>& runs) {
  std::array<std::optional<std::size_t>, most_symbols> plain;
  std::size_t at = 0;
  for (std::uint32_t begin = 0; begin < code_point_set::limit; begin += page_size) {
    if (at + 1 < runs.size() && runs[at + 1].begin == begin) ++at;
    const bool is_plain = at + 1 == runs.size() || runs[at + 1].begin >= begin + page_size;
    std::optional<std::size_t>& known = plain[runs[at].symbol];
    if (is_plain && known) {
      page_numbers_.push_back(static_cast<std::uint16_t>(*known));
      continue;
    }
    if (is_plain) known = pages_.size();
    page_numbers_.push_back(static_cast<std::uint16_t>(pages_.size()));
    page& made = pages_.emplace_back();
    for (std::uint32_t i = 0; i < page_size; ++i) {
      if (at + 1 < runs.size() && runs[at + 1].begin == begin + i) ++at;
      made[i] = static_cast<char>(runs[at].symbol);
    }
  }
}

char alphabet::symbol_of(std::uint32_t point) const noexcept {
  if (point >= code_point_set::limit) return 0;  // the text was not UTF-8
  return pages_[page_numbers_[point / page_size]][point % page_size];
}

void alphabet::translate(std::string_view text, std::string& out) const {
  out.resize(text.size());
  const page& first = pages_.front();
  char* to = out.data();
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x80) {
      *to++ = first[byte];
      ++at;
      continue;
    }
    const code_point point = code_point_at(text, at);
    *to++ = symbol_of(point.value);
    at += point.size_bytes;
  }
  out.resize(static_cast<std::size_t>(to - out.data()));
}

}  // namespace millrace::tokenizer::detail
