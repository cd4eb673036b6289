// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <vector>

#include <millrace/dataset/state.hpp>

namespace millrace::test {

/// Returns the positions of the first `count` samples that are served, in order. For each document,
/// `positions` lists the positions whose samples contain it.
inline std::vector<std::int64_t> naive_stream(
    std::span<const dataset::edit> edits, std::size_t count, std::int64_t global_batch,
    const std::map<std::int64_t, std::vector<std::int64_t>>& positions) {
  using dataset::edit_kind;
  std::vector<std::int64_t> served;
  std::set<std::int64_t> skipped;
  std::multimap<std::int64_t, std::deque<std::int64_t>> replays;  // key: index of first sample
  std::deque<std::int64_t> again;
  std::int64_t position = 0;
  std::set<std::size_t> known;
  const auto learn = [&](std::size_t i) {
    const dataset::edit& e = edits[i];
    const std::int64_t unit = e.unit == dataset::edit_unit::steps ? global_batch : 1;
    std::deque<std::int64_t> all;
    if (e.kind == edit_kind::block) {
      for (std::int64_t d = e.first; d < e.last; ++d) {
        const auto found = positions.find(d);
        if (found == positions.end()) continue;
        all.insert(all.end(), found->second.begin(), found->second.end());
      }
    } else {
      for (std::int64_t p = e.first * unit; p < e.last * unit; ++p) all.push_back(p);
    }
    if (e.kind == edit_kind::replay) {
      replays.emplace(e.at * unit, all);
    } else {
      skipped.insert(all.begin(), all.end());
    }
  };
  while (served.size() < count) {
    for (std::size_t i = 0; i < edits.size(); ++i) {
      if (edits[i].since <= static_cast<std::int64_t>(served.size()) && known.insert(i).second) {
        learn(i);
      }
    }
    if (!again.empty()) {
      if (!skipped.contains(again.front())) served.push_back(again.front());
      again.pop_front();
    } else if (const auto next = replays.find(position); next != replays.end()) {
      again = next->second;
      replays.erase(next);
    } else {
      if (!skipped.contains(position)) served.push_back(position);
      ++position;
    }
  }
  return served;
}

}  // namespace millrace::test
