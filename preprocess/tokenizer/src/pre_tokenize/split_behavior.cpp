// SPDX-License-Identifier: Apache-2.0
#include "pre_tokenize/split_behavior.hpp"

#include <algorithm>

#include "pre_tokenize/piece_stage.hpp"

namespace millrace::tokenizer::detail {
namespace {

void join_equal(std::vector<stretch>& stretches) {
  std::size_t size = 0;
  for (const stretch part : stretches) {
    if (size != 0 && stretches[size - 1].matches == part.matches) {
      stretches[size - 1].end = part.end;
    } else {
      stretches[size++] = part;
    }
  }
  stretches.resize(size);
}

// Joins each match to the previous stretch, unless that stretch is a match itself.
void join_previous(std::vector<stretch>& stretches) {
  std::size_t size = 0;
  bool after_match = false;
  for (const stretch part : stretches) {
    if (part.matches && !after_match && size != 0) {
      stretches[size - 1].end = part.end;
    } else {
      stretches[size++] = part;
    }
    after_match = part.matches;
  }
  stretches.resize(size);
}

void join_next(std::vector<stretch>& stretches) {
  std::size_t first = stretches.size();
  bool before_match = false;
  for (std::size_t i = stretches.size(); i-- > 0;) {
    const stretch part = stretches[i];
    if (part.matches && !before_match && first != stretches.size()) {
      stretches[first].begin = part.begin;
    } else {
      stretches[--first] = part;
    }
    before_match = part.matches;
  }
  stretches.erase(stretches.begin(), stretches.begin() + static_cast<std::ptrdiff_t>(first));
}

void join(std::vector<stretch>& stretches, split_behavior behavior) {
  if (behavior == split_behavior::contiguous) join_equal(stretches);
  if (behavior == split_behavior::merged_with_previous) join_previous(stretches);
  if (behavior == split_behavior::merged_with_next) join_next(stretches);
}

}  // namespace

std::optional<split_behavior> split_behavior_of(std::string_view name) noexcept {
  if (name == "Removed") return split_behavior::removed;
  if (name == "Isolated") return split_behavior::isolated;
  if (name == "MergedWithPrevious") return split_behavior::merged_with_previous;
  if (name == "MergedWithNext") return split_behavior::merged_with_next;
  if (name == "Contiguous") return split_behavior::contiguous;
  return std::nullopt;
}

void append_pieces(std::string_view text, std::vector<stretch>& stretches, split_behavior behavior,
                   piece_list& out) {
  join(stretches, behavior);
  if (behavior == split_behavior::removed) {
    for (const stretch& part : stretches) {
      if (!part.matches) out.add(text.substr(part.begin, part.end - part.begin));
    }
    return;
  }
  const std::size_t before = out.text.size();
  out.text += text;
  for (const stretch& part : stretches) {
    if (part.begin != part.end) out.ends.push_back(before + part.end);
  }
}

void append_pieces(std::string_view text, std::vector<stretch>& stretches, split_behavior behavior,
                   place_list& out) {
  join(stretches, behavior);
  for (const stretch& part : stretches) {
    if (behavior == split_behavior::removed && part.matches) continue;
    out.add(text.substr(part.begin, part.end - part.begin));
  }
}

}  // namespace millrace::tokenizer::detail
