// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/detail/packing/block_layout.hpp>
#include <millrace/dataset/detail/packing/packing_algorithm.hpp>
#include <millrace/dataset/detail/packing/row_plan.hpp>
#include <millrace/dataset/detail/packing/row_table.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

/// The documents of a dataset, packed into rows of seq_len tokens. Rows can be accessed in any
/// order. They depend only on the document lengths and the options.
///
/// A view: the columns must outlive it and must not be moved. Thread-safe. Never reads tokens.
/// Also works if files cannot be mapped.
///
/// - `best_fit` packs block by block, and finds rows by a `row_table`. The layouts of up to 64
///   recently used blocks are cached; each takes about 80 KB. A cache miss takes tens of
///   microseconds, plus two reads if the index is not mapped.
/// - The other algorithms make a `row_plan` at the start, which copies of this object can share.
class MILLRACE_EXPORT packed_rows {
 public:
  using plan_pointer = std::shared_ptr<const row_plan>;

  /// @param table_path  file for the table, see `open_row_table`; empty: do not store it. Plans are
  ///                    never stored
  /// @param plan        the plan of an earlier object for this dataset and these options; null:
  ///                    make it
  /// @throws config_error, format_error, io_error  as `open_row_table` and `row_plan`.
  packed_rows(const index_columns& columns, packing_options options,
              const std::filesystem::path& table_path = {}, plan_pointer plan = nullptr);
  packed_rows(const index_columns&&, packing_options, const std::filesystem::path& table_path = {},
              plan_pointer plan = nullptr) = delete;

  const index_columns& columns() const noexcept { return *columns_; }
  const packing_options& options() const noexcept { return options_; }
  /// The table. Without rows if there is a plan.
  const row_table& table() const noexcept { return table_; }
  /// The plan; null for `best_fit`.
  const plan_pointer& plan() const noexcept { return plan_; }
  std::int64_t row_count() const noexcept {
    return plan_ ? plan_->row_count() : table_.row_count();
  }
  /// With a plan, reads all lengths.
  /// @throws format_error, io_error  as `document_lengths`
  packing_report report() const;

  /// Replaces `parts` with the parts of row `r`.
  ///
  /// @pre 0 <= r < row_count()
  /// @throws format_error  the index changed since the table was built, or is invalid for this row
  /// @throws io_error
  void row(std::int64_t r, std::vector<packed_part>& parts) const;

  /// Returns the rows that contain a part of `document`, in the order of the document's tokens.
  ///
  /// @pre the document is in the packed range
  /// @throws format_error, io_error  as for `row`.
  std::vector<std::int64_t> rows_of(std::int64_t document) const;

 private:
  using layout_pointer = std::shared_ptr<const block_layout>;
  struct slot {
    std::mutex mutex;
    std::int64_t block = -1;
    layout_pointer layout;
  };

  std::int64_t first_row(std::int64_t block) const noexcept {
    return block == 0 ? 0 : table_.ends[static_cast<std::size_t>(block) - 1];
  }
  layout_pointer layout_of(std::int64_t block) const;
  layout_pointer make_layout(std::int64_t block) const;
  void planned_row(std::int64_t r, std::vector<packed_part>& parts) const;

  const index_columns* columns_;
  packing_options options_;
  row_table table_;  // with a plan, only its header
  plan_pointer plan_;
  std::unique_ptr<std::array<slot, 64>> slots_ = std::make_unique<std::array<slot, 64>>();
};

/// The epoch and row of a sample.
struct packed_place {
  std::int64_t epoch;
  std::int64_t row;
  friend bool operator==(const packed_place&, const packed_place&) = default;
};

/// The order of packed rows: each epoch serves all rows in a permuted order. Position k is in epoch
/// e = floor(k / rows), and serves row `shuffles(e)(k mod rows)`. Keeps no state, so random access
/// is cheap.
///
/// @tparam Shuffles  `shuffles(epoch)` returns a permutation p of 0 to rows - 1, with the members
///                   `p(i)` and `p.inverse(row)`
template <class Shuffles>
class packed_order {
 public:
  /// @throws config_error  there are no rows.
  packed_order(std::int64_t rows, Shuffles shuffles) : rows_(rows), shuffles_(std::move(shuffles)) {
    if (rows < 1) throw config_error("there are no documents to pack, expected at least one token");
  }

  std::int64_t samples_per_epoch() const noexcept { return rows_; }

  /// @pre k >= 0
  packed_place operator[](std::int64_t k) const {
    assert(k >= 0);
    return {k / rows_, shuffles_(k / rows_)(k % rows_)};
  }

  /// The position at which a row is served.
  std::int64_t position(const packed_place& place) const {
    return place.epoch * rows_ + shuffles_(place.epoch).inverse(place.row);
  }

 private:
  std::int64_t rows_;
  Shuffles shuffles_;
};

/// A `Shuffles` parameter for `packed_order` that serves rows in stored order. It is for
/// evaluation, and for callers that shuffle elsewhere.
struct unshuffled {
  struct identity {
    std::int64_t operator()(std::int64_t i) const noexcept { return i; }
    std::int64_t inverse(std::int64_t row) const noexcept { return row; }
  };
  identity operator()(std::int64_t) const noexcept { return {}; }
};

}  // namespace millrace::dataset
