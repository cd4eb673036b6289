// SPDX-License-Identifier: Apache-2.0
//
// Internal types of packed_run, for the library and its tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <millrace/dataset/detail/instant/document_search.hpp>
#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/detail/packing/packed_rows.hpp>
#include <millrace/dataset/detail/packing/packed_sample.hpp>
#include <millrace/dataset/packed_run.hpp>
#include <millrace/formats/dtype.hpp>

namespace millrace::dataset {

/// An open source.
struct packed_run::open_source {
  open_source(const std::filesystem::path& prefix, const packing_options& options, bool keep,
              std::shared_ptr<const row_plan> plan);
  open_source(const open_source&) = delete;
  open_source& operator=(const open_source&) = delete;

  const index_columns& columns() const noexcept { return search.columns(); }

  document_search search;
  packed_rows rows;  // uses the columns of `search`
};
/// Facts about a source that are available without opening it.
struct packed_run::source_info {
  std::string name;
  std::int64_t rows = 0;
  std::int64_t tokens = 0;
  std::uint64_t bin_bytes = 0;
  formats::dtype type = formats::dtype::uint16;
  std::uint64_t hash = 0;                ///< hash of seed and name
  std::shared_ptr<const row_plan> plan;  ///< null for `best_fit`
};

}  // namespace millrace::dataset
