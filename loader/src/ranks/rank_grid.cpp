// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/ranks/rank_grid.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/error.hpp>

namespace millrace::loader {

MILLRACE_INLINE rank_grid::rank_grid(const axis_values& sizes, std::string_view order,
                                     std::int64_t offset)
    : sizes_(sizes), offset_(offset) {
  std::vector<parallel_axis> axes = parse(order);
  const auto missing = [&](parallel_axis axis) { return std::ranges::count(axes, axis) == 0; };
  for (std::size_t i = 0; i < parallel_axis_names.size(); ++i) {
    const auto axis = static_cast<parallel_axis>(i);
    const std::string name = parallel_axis_names[i];
    if (sizes[axis] < 1) {
      throw config_error(name + " is " + std::to_string(sizes[axis]) + ", expected 1 or more");
    }
    if (sizes[axis] != 1 && missing(axis)) {
      throw config_error("the order of ranks '" + std::string(order) + "' has no " + name +
                         ", whose size is " + std::to_string(sizes[axis]) + ", not 1");
    }
  }
  if (sizes.cp > 1 && sizes.ep > 1) {
    throw config_error("cp is " + std::to_string(sizes.cp) + " and ep " + std::to_string(sizes.ep) +
                       ", expected one of them to be 1, because experts have their own numbering");
  }
  if (offset < 0) {
    throw config_error("the offset of ranks is " + std::to_string(offset) + ", expected 0 or more");
  }
  for (const parallel_axis axis : axes) {
    steps_.push_back({axis, size_});
    if (sizes[axis] > (std::int64_t{1} << 62) / size_) {
      throw config_error("more than 2^62 ranks: check the sizes of tp, cp, ep, dp and pp");
    }
    size_ *= sizes[axis];
  }
  if (offset > std::numeric_limits<std::int64_t>::max() - size_) {
    throw config_error("the offset of ranks is " + std::to_string(offset) + ", too large");
  }
}

MILLRACE_INLINE std::vector<parallel_axis> rank_grid::parse(std::string_view text) {
  std::vector<parallel_axis> axes;
  std::string lower(text);
  for (char& c : lower) {
    if ('A' <= c && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  for (std::string_view rest = lower; !rest.empty();) {
    const std::string_view name = rest.substr(0, rest.find('-'));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    const auto found = std::ranges::find(parallel_axis_names, name);
    if (found == parallel_axis_names.end()) {
      throw config_error("'" + std::string(name) + "' in '" + std::string(text) +
                         "' is not an axis, expected tp, cp, ep, dp or pp, with '-' between");
    }
    const auto axis = static_cast<parallel_axis>(found - parallel_axis_names.begin());
    if (std::ranges::count(axes, axis) != 0) {
      throw config_error("'" + std::string(text) + "' names " + *found + " twice");
    }
    axes.push_back(axis);
  }
  if (axes.empty() || lower.back() == '-') {
    throw config_error("'" + std::string(text) +
                       "' has an empty axis, expected tp, cp, ep, dp or pp, with '-' between");
  }
  return axes;
}

MILLRACE_INLINE axis_values rank_grid::place_of(std::int64_t rank) const {
  if (rank < offset_ || rank - offset_ >= size_) {
    throw config_error("rank is " + std::to_string(rank) + ", expected " + std::to_string(offset_) +
                       " to " + std::to_string(offset_ + size_ - 1));
  }
  axis_values place = {0, 0, 0, 0, 0};
  for (const step& each : steps_) {
    place[each.axis] = (rank - offset_) / each.stride % sizes_[each.axis];
  }
  return place;
}

MILLRACE_INLINE std::int64_t rank_grid::rank_of(const axis_values& place) const {
  for (std::size_t i = 0; i < parallel_axis_names.size(); ++i) {
    const auto axis = static_cast<parallel_axis>(i);
    if (place[axis] < 0 || place[axis] >= sizes_[axis]) {
      throw config_error(std::string("the place along ") + parallel_axis_names[i] + " is " +
                         std::to_string(place[axis]) + ", expected 0 to " +
                         std::to_string(sizes_[axis] - 1));
    }
  }
  std::int64_t rank = offset_;
  for (const step& each : steps_) rank += place[each.axis] * each.stride;
  return rank;
}

MILLRACE_INLINE std::int64_t rank_grid::sum_of(const steps& along,
                                               std::int64_t index) const noexcept {
  std::int64_t sum = 0;
  for (const step& each : along) {
    sum += index % sizes_[each.axis] * each.stride;
    index /= sizes_[each.axis];
  }
  return sum;
}

MILLRACE_INLINE std::vector<std::vector<std::int64_t>> rank_grid::groups(
    std::string_view axes) const {
  const std::vector<parallel_axis> named = parse(axes);
  steps inside;
  steps outside;
  std::int64_t group_size = 1;
  for (const step& each : steps_) {
    const bool in = std::ranges::count(named, each.axis) != 0;
    (in ? inside : outside).push_back(each);
    if (in) group_size *= sizes_[each.axis];
  }
  std::vector<std::vector<std::int64_t>> result(static_cast<std::size_t>(size_ / group_size));
  for (std::size_t group = 0; group < result.size(); ++group) {
    const std::int64_t first = offset_ + sum_of(outside, static_cast<std::int64_t>(group));
    for (std::int64_t i = 0; i < group_size; ++i) {
      result[group].push_back(first + sum_of(inside, i));
    }
  }
  return result;
}

}  // namespace millrace::loader
