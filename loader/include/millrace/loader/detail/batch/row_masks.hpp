// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <millrace/dataset/detail/lost_pages.hpp>
#include <millrace/dataset/detail/run/sample_text.hpp>
#include <millrace/dataset/detail/token_mask.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/formats/dtype.hpp>
#include <millrace/loader/detail/batch/batch_slot.hpp>
#include <millrace/loader/detail/batch/wanted_fields.hpp>

namespace millrace::loader::detail {

/// The masks of a run's datasets, and what they say about rows. Not thread-safe.
///
/// A row needs its boundaries, because the label of a document's last token is not part of the
/// document.
class MILLRACE_EXPORT row_masks {
 public:
  /// Opens the masks of all datasets.
  ///
  /// @param verify  whether to compare each block of a mask with its checksum before it is used for
  ///                the first time
  /// @param last_token_as_label  see `dataset::packed_options`
  /// @return nullopt if no dataset has one, or if they are to be ignored
  /// @throws io_error, format_error  as token_mask::find
  static std::optional<row_masks> open(std::span<const dataset::run_source> sources,
                                       mask_alignment alignment, bool verify = true,
                                       bool last_token_as_label = false);
  /// Whether any dataset has a mask. Only looks for the files.
  static bool any(std::span<const dataset::run_source> sources);

  /// Fills `counted` of a slot of whole rows, of which only parts may have been read.
  ///
  /// @param rows  with boundaries
  /// @param slot  masked, and filled but for `counted`
  /// @throws io_error      a page of a mask was lost
  /// @throws format_error  a bit of a mask has changed since it was written
  void fill(std::span<const dataset::sample_text> rows, batch_slot& slot);

 private:
  struct source_mask {
    dataset::token_mask mask;
    dataset::lost_page_watch watch;
    std::vector<bool> is_good;  // by block; empty if blocks are not checked

    void check(std::int64_t first, std::int64_t last);
  };

  row_masks() = default;
  void fill_row(const dataset::sample_text& row, std::int64_t seq_len,
                std::span<std::uint32_t> counted);
  void drop_last_labels(const dataset::sample_text& row, std::int64_t seq_len,
                        std::span<std::uint32_t> counted) const;

  bool last_token_as_label_ = false;
  mask_alignment alignment_ = mask_alignment::label;
  std::vector<std::optional<source_mask>> masks_;  // by source
  std::vector<std::size_t> token_bytes_;           // by source
};

}  // namespace millrace::loader::detail
