// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/dataset/instant/index_columns.hpp>
#include <millrace/dataset/instant/schedule.hpp>
#include <millrace/dataset/instant/source_pool.hpp>
#include <millrace/dataset/instant/window_order.hpp>
#include <millrace/dataset/sample/piece.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

/// A dataset of a run.
struct instant_source {
  std::filesystem::path prefix;  ///< without `.bin` and `.idx`
  /// What its order goes by; empty: the file name of the prefix. Moving the files changes nothing.
  std::string name;
  /// How often its tokens may be served; fractions of an epoch count. Nothing: without limit.
  std::optional<double> most_epochs;
  /// Tokens in the `.bin`, where they are known; else the headers are looked at.
  std::optional<std::int64_t> token_count;
};

/// All that decides the order of a run.
struct instant_options {
  std::uint64_t seed = 1234;
  std::int64_t seq_len = 0;
  /// At least one from step 0 on; `source` counts the sources given beside it.
  std::vector<schedule_segment> segments;
  /// First position of a step: step * global_batch_size, or what a ramp-up makes of it.
  schedule::first_position first_position_of;
  std::optional<std::int64_t> train_samples;
  std::size_t most_open = 512;  ///< indices kept open at once; it decides nothing else
};

/// One sample of a run: the window of a source.
struct instant_sample {
  std::int64_t source = 0;
  std::int64_t k = 0;  ///< its number among the samples of the source
  window_place place;

  friend bool operator==(const instant_sample&, const instant_sample&) = default;
};

/// Position to sample to pieces, and back, for a run over many sources: blend, window order and
/// document search in one. Nothing is built but the blend's tables; an index is opened when a
/// sample's pieces are first asked for.
///
///   position --schedule--> (source, k) --window_order--> tokens --document_search--> pieces
///
/// Sources may store their tokens in different types: an id is the same number in each.
/// Positions are those of all ranks: a rank that serves every n-th of them, or a run that goes on
/// from any of them, gets what one reader from the start would get. Any number of threads.
class instant_order {
 public:
  /// @throws config_error  an option is out of range, names are not unique, a source has less than
  ///                       one window; or what `schedule` refuses. Each is a sentence that names
  ///                       the source or the step.
  /// @throws io_error, format_error  where token counts are not given: a dataset cannot be opened.
  instant_order(const std::vector<instant_source>& sources, const instant_options& options);

  std::int64_t source_count() const noexcept { return static_cast<std::int64_t>(orders_.size()); }
  const std::string& name(std::int64_t source) const noexcept { return names_[index(source)]; }
  const window_order& windows(std::int64_t source) const noexcept { return orders_[index(source)]; }
  const schedule& blend() const noexcept { return schedule_; }
  std::int64_t seq_len() const noexcept { return seq_len_; }
  /// Positions from here on are not served.
  std::int64_t end() const noexcept { return schedule_.end(); }

  /// @pre 0 <= position < end()
  instant_sample at(std::int64_t position) const noexcept {
    const blend_place place = schedule_.at(position);
    return {place.source, place.k, orders_[index(place.source)].at(place.k)};
  }

  /// Appends what a sample is made of: seq_len + 1 tokens, the last one a label only.
  ///
  /// @throws io_error, format_error  the dataset cannot be opened, is not the one that was counted,
  ///                                 or contradicts itself there.
  void pieces(const instant_sample& sample, std::vector<piece>& out) const {
    open(sample.source)->pieces(sample.place.first_token, sample.place.tokens, out);
  }

  /// The index of a source.
  /// @throws as `pieces`
  source_pool::source_pointer open(std::int64_t source) const;

  /// Where in the run a window is served; nothing if it never is.
  /// @pre 0 <= source < source_count(), 0 <= epoch, 0 <= window < its windows_per_epoch()
  std::optional<std::int64_t> position_of(std::int64_t source, std::int64_t epoch,
                                          std::int64_t window) const noexcept;

  /// All positions below `before` at which a token of a source is an input, by epoch.
  ///
  /// @pre 0 <= source < source_count(), 0 <= token < its token count, 0 <= before <= end()
  std::vector<std::int64_t> positions_of(std::int64_t source, std::int64_t token,
                                         std::int64_t before) const;

 private:
  static std::size_t index(std::int64_t i) noexcept { return static_cast<std::size_t>(i); }
  static std::vector<std::filesystem::path> prefixes_of(const std::vector<instant_source>& sources);
  static std::vector<window_order> orders_of(const std::vector<instant_source>& sources,
                                             const std::vector<std::string>& names,
                                             const instant_options& options);
  std::vector<source_limit> limits_of(const std::vector<instant_source>& sources) const;

  std::int64_t seq_len_;
  std::vector<std::string> names_;
  std::vector<window_order> orders_;
  schedule schedule_;
  mutable source_pool pool_;  // a cache: what it gives out does not depend on what it holds
};

// ---------------------------------------------------------------------------------------------

namespace detail {

inline schedule::first_position checked_steps(schedule::first_position first_position_of) {
  if (!first_position_of) {
    throw config_error(
        "first_position_of is empty, expected the first position of each step, "
        "e.g. step * global_batch_size");
  }
  return first_position_of;
}

/// What the orders of the sources go by, which must not be the same.
inline std::vector<std::string> checked_names(const std::vector<instant_source>& sources) {
  std::vector<std::string> names;
  std::map<std::uint64_t, std::size_t> met;  // by what the order is keyed with
  for (const instant_source& source : sources) {
    names.push_back(source.name.empty() ? source.prefix.filename().string() : source.name);
    const auto [first, is_new] = met.emplace(name_hash(names.back()), names.size() - 1);
    if (is_new) continue;
    throw config_error("sources " + std::to_string(first->second) + " and " +
                       std::to_string(names.size() - 1) + " are both named \"" + names.back() +
                       "\", and would be shuffled alike; give one of them another name (" +
                       sources[first->second].prefix.string() + ", " + source.prefix.string() +
                       ")");
  }
  return names;
}

/// What may be served of a source, an epoch of which has `samples`.
inline source_limit limit_of(const instant_source& source, const std::string& name,
                             std::int64_t samples) {
  source_limit limit{name, std::nullopt};
  if (!source.most_epochs) return limit;
  const double epochs = *source.most_epochs;
  if (!(epochs > 0) || !std::isfinite(epochs)) {
    throw config_error("most_epochs of source " + name + " is " + std::to_string(epochs) +
                       ", expected a number above zero");
  }
  const double most = std::floor(epochs * static_cast<double>(samples));
  // A limit that no 64-bit position reaches is none.
  if (most < 9e18) limit.most_samples = static_cast<std::int64_t>(most);
  return limit;
}

}  // namespace detail

inline instant_order::instant_order(const std::vector<instant_source>& sources,
                                    const instant_options& options)
    : seq_len_(options.seq_len),
      names_(detail::checked_names(sources)),
      orders_(orders_of(sources, names_, options)),
      schedule_(options.segments, limits_of(sources),
                detail::checked_steps(options.first_position_of), options.train_samples),
      pool_(prefixes_of(sources), options.most_open) {}

inline std::vector<std::filesystem::path> instant_order::prefixes_of(
    const std::vector<instant_source>& sources) {
  std::vector<std::filesystem::path> prefixes;
  prefixes.reserve(sources.size());
  for (const instant_source& source : sources) prefixes.push_back(source.prefix);
  return prefixes;
}

inline std::vector<window_order> instant_order::orders_of(
    const std::vector<instant_source>& sources, const std::vector<std::string>& names,
    const instant_options& options) {
  std::vector<window_order> orders;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    std::int64_t tokens = 0;
    if (sources[i].token_count) {
      tokens = *sources[i].token_count;
    } else {
      // Not mapped: thousands of them are looked at here, and most are not needed for hours.
      tokens = index_columns(sources[i].prefix, index_access::pread).token_count();
    }
    orders.emplace_back(names[i], tokens, options.seq_len, options.seed);
  }
  return orders;
}

inline std::vector<source_limit> instant_order::limits_of(
    const std::vector<instant_source>& sources) const {
  std::vector<source_limit> limits;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    limits.push_back(detail::limit_of(sources[i], names_[i], orders_[i].windows_per_epoch()));
  }
  return limits;
}

inline source_pool::source_pointer instant_order::open(std::int64_t source) const {
  auto opened = pool_.get(source);
  const std::int64_t found = opened->columns().token_count();
  const std::int64_t expected = windows(source).token_count();
  if (found != expected) {
    throw format_error(opened->columns().idx_path(), 0,
                       "the dataset has " + std::to_string(found) + " tokens, but had " +
                           std::to_string(expected) +
                           " when the order was set up: it is another one, or was replaced");
  }
  return opened;
}

inline std::optional<std::int64_t> instant_order::position_of(std::int64_t source,
                                                              std::int64_t epoch,
                                                              std::int64_t window) const noexcept {
  const window_order& order = windows(source);
  if (epoch >= schedule::unbounded / order.windows_per_epoch()) return std::nullopt;
  return schedule_.position_of({source, order.sample_of(epoch, window)});
}

inline std::vector<std::int64_t> instant_order::positions_of(std::int64_t source,
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
