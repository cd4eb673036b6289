// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/run/edited_stream.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <millrace/error.hpp>

namespace millrace::dataset {

MILLRACE_INLINE edited_stream::edited_stream(std::vector<resolved> edits) {
  std::ranges::stable_sort(edits, {}, &resolved::since);
  builder b;
  for (std::size_t i = 0; i < edits.size(); ++i) {
    b.advance(edits[i].since);
    b.add(edits[i]);
  }
  b.advance(forever);
  runs_ = std::move(b.runs);
  dropped_ = std::move(b.dropped);
  by_position_.resize(runs_.size());
  std::iota(by_position_.begin(), by_position_.end(), std::size_t{0});
  std::ranges::sort(by_position_, {},
                    [&](std::size_t i) { return std::pair(runs_[i].position, runs_[i].served); });
  std::int64_t furthest = 0;
  for (const std::size_t i : by_position_) {
    furthest = std::max(furthest, runs_[i].position + runs_[i].count);
    furthest_end_.push_back(furthest);
  }
  furthest = 0;
  for (const stretch& r : runs_) {
    furthest = std::max(furthest, r.position + r.count);
    reached_.push_back(furthest);
  }
}

MILLRACE_INLINE std::int64_t edited_stream::operator[](std::int64_t n) const noexcept {
  assert(n >= 0);
  const auto& r = *(std::ranges::upper_bound(runs_, n, {}, &stretch::served) - 1);
  return r.position + (n - r.served);
}

MILLRACE_INLINE std::int64_t edited_stream::served_before(std::int64_t end) const noexcept {
  assert(end >= 0);
  const auto i = std::ranges::upper_bound(reached_, end) - reached_.begin();
  if (i == std::ssize(reached_)) return forever;
  const stretch& r = runs_[static_cast<std::size_t>(i)];
  return r.served + std::max<std::int64_t>(0, end - r.position);
}

MILLRACE_INLINE std::int64_t edited_stream::at(std::int64_t n, std::int64_t end) const {
  const std::int64_t position = (*this)[n];
  if (position < end) return position;
  throw config_error("sample " + std::to_string(n) + " of the edited run is sample " +
                     std::to_string(position) + " of the run without edits, which has " +
                     std::to_string(end) + ": edited, it has " +
                     std::to_string(served_before(end)) +
                     "; raise train_samples, skip fewer samples, or stop before it");
}

MILLRACE_INLINE std::int64_t edited_stream::reached(std::int64_t n) const noexcept {
  assert(n >= 0);
  if (n == 0) return 0;
  const auto i = std::ranges::upper_bound(runs_, n - 1, {}, &stretch::served) - runs_.begin() - 1;
  const stretch& r = runs_[static_cast<std::size_t>(i)];
  const std::int64_t here = r.position + (n - r.served);
  return i == 0 ? here : std::max(here, reached_[static_cast<std::size_t>(i - 1)]);
}

MILLRACE_INLINE std::vector<std::int64_t> edited_stream::all_served(std::int64_t position) const {
  std::vector<std::int64_t> found;
  auto i = static_cast<std::size_t>(
      std::ranges::upper_bound(by_position_, position, {},
                               [&](std::size_t r) { return runs_[r].position; }) -
      by_position_.begin());
  // Go backward while any earlier stretch may extend to `position`. Only a replay overlaps other
  // stretches.
  while (i-- > 0 && furthest_end_[i] > position) {
    const stretch& r = runs_[by_position_[i]];
    if (position - r.position < r.count) found.push_back(r.served + (position - r.position));
  }
  std::ranges::sort(found);
  return found;
}

MILLRACE_INLINE std::optional<std::int64_t> edited_stream::served(std::int64_t position) const {
  const auto all = all_served(position);
  return all.empty() ? std::nullopt : std::optional(all.front());
}

MILLRACE_INLINE bool edited_stream::same_until(const edited_stream& other,
                                               std::int64_t n) const noexcept {
  for (std::int64_t at = 0; at < n;) {
    const auto run_at = [at](const edited_stream& s) {
      return *(std::ranges::upper_bound(s.runs_, at, {}, &stretch::served) - 1);
    };
    if ((*this)[at] != other[at]) return false;
    const stretch a = run_at(*this);
    const stretch b = run_at(other);
    at = std::min(a.served + a.count, b.served + b.count);
  }
  return true;
}

}  // namespace millrace::dataset
