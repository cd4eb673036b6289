// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <millrace/dataset/detail/instant/instant_options.hpp>
#include <millrace/dataset/detail/instant/schedule.hpp>
#include <millrace/dataset/detail/instant/source_pool.hpp>
#include <millrace/dataset/detail/instant/window_order.hpp>
#include <millrace/dataset/detail/sample/piece.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// One sample of a run: a window (seq_len + 1 contiguous tokens) of a source.
struct instant_sample {
  std::int64_t source = 0;
  std::int64_t k = 0;  ///< index among the samples of the source, over all epochs
  window_place place;

  friend bool operator==(const instant_sample&, const instant_sample&) = default;
};

/// For a run over many sources, maps positions to samples, samples to pieces, and pieces back to
/// positions. Combines the blend, the window order and the document search. Builds only the blend's
/// tables. Opens the `.idx` of a source when pieces of its samples are first requested.
///
///   position --schedule--> (source, k) --window_order--> tokens --document_search--> pieces
///
/// Sources may store their tokens in different dtypes; a token id is the same number in each.
/// Positions count the samples of all ranks. The sample at a position is therefore the same for a
/// single reader, for a rank that serves every n-th position, and for a run that resumes at any
/// position. Thread-safe.
class MILLRACE_EXPORT instant_order {
 public:
  /// @throws config_error  an option is out of range, names are not unique, a source has less than
  ///                       one window, or `schedule` rejects the segments. The message names the
  ///                       source or the step.
  /// @throws io_error, format_error  a token count is not given and the dataset cannot be opened.
  instant_order(const std::vector<instant_source>& sources, const instant_options& options);

  std::int64_t source_count() const noexcept { return static_cast<std::int64_t>(orders_.size()); }
  const std::string& name(std::int64_t source) const noexcept { return names_[index(source)]; }
  const window_order& windows(std::int64_t source) const noexcept { return orders_[index(source)]; }
  const schedule& blend() const noexcept { return schedule_; }
  std::int64_t seq_len() const noexcept { return seq_len_; }
  /// Number of positions that are served.
  std::int64_t end() const noexcept { return schedule_.end(); }

  /// @pre 0 <= position < end()
  instant_sample at(std::int64_t position) const noexcept {
    const blend_place place = schedule_.at(position);
    return {place.source, place.k, orders_[index(place.source)].at(place.k)};
  }

  /// Appends the pieces of a sample: seq_len + 1 tokens, of which the last one is only a label.
  ///
  /// @throws io_error, format_error  the dataset cannot be opened; its token count has changed; or
  ///                                 its index is inconsistent at this sample.
  void pieces(const instant_sample& sample, std::vector<piece>& out) const {
    open(sample.source)->pieces(sample.place.first_token, sample.place.tokens, out);
  }

  /// Returns the open `.idx` file of a source. Opens it first if necessary.
  /// @throws as `pieces`
  source_pool::source_pointer open(std::int64_t source) const;

  /// Returns the position at which a window is served; nullopt if it is never served.
  /// @pre 0 <= source < source_count(), 0 <= epoch, 0 <= window < windows_per_epoch() of the source
  std::optional<std::int64_t> position_of(std::int64_t source, std::int64_t epoch,
                                          std::int64_t window) const noexcept;

  /// Returns all positions below `before` whose samples have token `token` of the source as an
  /// input. The positions are sorted by epoch.
  ///
  /// @pre 0 <= source < source_count(), 0 <= token < tokens of the source, 0 <= before <= end()
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
  mutable source_pool pool_;  // a cache of open `.idx` files; does not affect results
};

// ---------------------------------------------------------------------------------------------

namespace detail {

MILLRACE_EXPORT schedule::first_position checked_steps(schedule::first_position first_position_of,
                                                       std::size_t segments);

/// Returns the names that determine the sources' orders. Throws if two names are equal.
MILLRACE_EXPORT std::vector<std::string> checked_names(const std::vector<instant_source>& sources);

/// Returns the limit of a source. `samples` is its number of samples per epoch.
MILLRACE_EXPORT source_limit limit_of(const instant_source& source, const std::string& name,
                                      std::int64_t samples);

}  // namespace detail

}  // namespace millrace::dataset
