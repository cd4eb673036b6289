// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <millrace/formats/detail/json_writer.hpp>

namespace millrace::bench {

/// The target of a figure: the figure must not be worse than `must`, and ideally is not worse than
/// `aim`.
struct target {
  double must;
  double aim;
  bool more_is_better = false;
};

/// A measured figure: one value per round.
struct figure {
  std::string name;
  std::string unit;
  std::vector<double> rounds;
  std::optional<bench::target> target = {};
};

/// @pre `values` is not empty, and 0 <= share <= 1
inline double quantile(std::vector<double> values, double share) {
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}
inline double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

inline const char* verdict_of(double value, const target& wanted) {
  const auto reaches = [&](double limit) {
    return wanted.more_is_better ? value >= limit : value <= limit;
  };
  return reaches(wanted.aim) ? "aim reached" : reaches(wanted.must) ? "must reached" : "missed";
}

/// Prints a figure as one line of JSON, with the median and the spread of its rounds, and its
/// target.
inline void print(const figure& figure) {
  const auto [low, high] = std::ranges::minmax(figure.rounds);
  const double middle = median(figure.rounds);
  formats::json_writer json;
  json.open('{').key("figure").value(figure.name).key("unit").value(figure.unit);
  json.key("median").value(middle).key("low").value(low).key("high").value(high);
  json.key("rounds").value(figure.rounds.size());
  if (figure.target) {
    json.key("must").value(figure.target->must).key("aim").value(figure.target->aim);
    json.key("verdict").value(verdict_of(middle, *figure.target));
  }
  json.close('}');
  std::cout << json.text() << std::endl;
}

}  // namespace millrace::bench
