// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/instant/instant_order.hpp>

#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/detail/instant/schedule.hpp>
#include <millrace/dataset/detail/instant/source_pool.hpp>
#include <millrace/dataset/detail/instant/window_order.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

namespace detail {

MILLRACE_INLINE schedule::first_position checked_steps(schedule::first_position first_position_of,
                                                       std::size_t segments) {
  if (first_position_of) return first_position_of;
  if (segments <= 1) return [](std::int64_t step) { return step; };
  throw config_error("first_position_of is empty, but there are " + std::to_string(segments) +
                     " segments: expected the first position of each step, e.g. "
                     "step * global_batch_size");
}

/// Returns the names that determine the sources' orders. Throws if two names are equal.
MILLRACE_INLINE std::vector<std::string> checked_names(const std::vector<instant_source>& sources) {
  std::vector<std::string> names;
  std::map<std::uint64_t, std::size_t> met;  // [name hash], index of the source
  for (const instant_source& source : sources) {
    names.push_back(source.name.empty() ? source.prefix.filename().string() : source.name);
    const auto [first, is_new] = met.emplace(name_hash(names.back()), names.size() - 1);
    if (is_new) continue;
    throw config_error(
        "sources " + std::to_string(first->second) + " and " + std::to_string(names.size() - 1) +
        " are both named \"" + names.back() +
        "\", so they would be shuffled identically; give one of them another name (" +
        sources[first->second].prefix.string() + ", " + source.prefix.string() + ")");
  }
  return names;
}

/// Returns the limit of a source. `samples` is its number of samples per epoch.
MILLRACE_INLINE source_limit limit_of(const instant_source& source, const std::string& name,
                                      std::int64_t samples) {
  source_limit limit{name, std::nullopt};
  if (!source.most_epochs) return limit;
  const double epochs = *source.most_epochs;
  if (!(epochs > 0) || !std::isfinite(epochs)) {
    throw config_error("most_epochs of source " + name + " is " + std::to_string(epochs) +
                       ", expected a number above zero");
  }
  const double most = std::floor(epochs * static_cast<double>(samples));
  // Ignore a limit that no 64-bit position can reach.
  if (most < 9e18) limit.most_samples = static_cast<std::int64_t>(most);
  return limit;
}

}  // namespace detail

MILLRACE_INLINE instant_order::instant_order(const std::vector<instant_source>& sources,
                                             const instant_options& options)
    : seq_len_(options.seq_len),
      names_(detail::checked_names(sources)),
      orders_(orders_of(sources, names_, options)),
      schedule_(options.segments, limits_of(sources),
                detail::checked_steps(options.first_position_of, options.segments.size()),
                options.train_samples),
      pool_(prefixes_of(sources), options.most_open) {}

MILLRACE_INLINE std::vector<std::filesystem::path> instant_order::prefixes_of(
    const std::vector<instant_source>& sources) {
  std::vector<std::filesystem::path> prefixes;
  prefixes.reserve(sources.size());
  for (const instant_source& source : sources) prefixes.push_back(source.prefix);
  return prefixes;
}

MILLRACE_INLINE std::vector<window_order> instant_order::orders_of(
    const std::vector<instant_source>& sources, const std::vector<std::string>& names,
    const instant_options& options) {
  std::vector<window_order> orders;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    std::int64_t tokens = 0;
    if (sources[i].token_count) {
      tokens = *sources[i].token_count;
    } else {
      // Do not map the index: thousands of indices may be opened here, and most are not needed for
      // hours.
      tokens = index_columns(sources[i].prefix, index_access::pread).token_count();
    }
    orders.emplace_back(names[i], tokens, options.seq_len, options.seed);
  }
  return orders;
}

MILLRACE_INLINE std::vector<source_limit> instant_order::limits_of(
    const std::vector<instant_source>& sources) const {
  std::vector<source_limit> limits;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    limits.push_back(detail::limit_of(sources[i], names_[i], orders_[i].windows_per_epoch()));
  }
  return limits;
}

MILLRACE_INLINE source_pool::source_pointer instant_order::open(std::int64_t source) const {
  auto opened = pool_.get(source);
  const std::int64_t found = opened->columns().token_count();
  const std::int64_t expected = windows(source).token_count();
  if (found != expected) {
    throw format_error(opened->columns().idx_path(), 0,
                       "the dataset has " + std::to_string(found) + " tokens, but had " +
                           std::to_string(expected) +
                           " when the order was created: it is another dataset, or was replaced");
  }
  return opened;
}

MILLRACE_INLINE std::optional<std::int64_t> instant_order::position_of(
    std::int64_t source, std::int64_t epoch, std::int64_t window) const noexcept {
  const window_order& order = windows(source);
  std::int64_t epochs_end = 0;  // the sample indices up to the end of the epoch must fit in 64 bits
  if (epoch >= schedule::unbounded ||
      __builtin_mul_overflow(epoch + 1, order.windows_per_epoch(), &epochs_end)) {
    return std::nullopt;
  }
  return schedule_.position_of({source, order.sample_of(epoch, window)});
}

MILLRACE_INLINE std::vector<std::int64_t> instant_order::positions_of(std::int64_t source,
                                                                      std::int64_t token,
                                                                      std::int64_t before) const {
  const window_order& order = windows(source);
  assert(0 <= token && token < order.token_count() && 0 <= before && before <= end());
  std::vector<std::int64_t> positions;
  const std::int64_t taken = schedule_.taken(source, before);
  for (std::int64_t e = 0; e * order.windows_per_epoch() < taken; ++e) {
    const auto k = order.sample_of_input(e, token);
    if (k && *k < taken) positions.push_back(*schedule_.position_of({source, *k}));
  }
  return positions;
}

}  // namespace millrace::dataset
