// SPDX-License-Identifier: Apache-2.0
//
// Internal types of megatron_run, for the library and its tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <millrace/dataset/detail/instant/document_search.hpp>
#include <millrace/dataset/detail/megatron/gpt_cache.hpp>
#include <millrace/dataset/detail/megatron/gpt_index_view.hpp>
#include <millrace/dataset/detail/megatron/gpt_order.hpp>
#include <millrace/dataset/detail/megatron/gpt_plan.hpp>
#include <millrace/dataset/megatron_run.hpp>
#include <millrace/formats/dtype.hpp>
#include <millrace/io/file_mapping.hpp>

namespace millrace::dataset {

/// For each sample of a blend, its dataset and its index in that dataset.
struct blend_columns {
  std::vector<std::int16_t> dataset;
  std::vector<std::int64_t> sample;
};

/// Facts about a source that are available without opening it.
struct megatron_run::source_info {
  std::filesystem::path prefix;
  std::string whose;  ///< "the train part of PREFIX", for messages
  formats::dtype type = formats::dtype::uint16;
  std::int64_t tokens = 0;
  std::int64_t sequences = 0;
  std::optional<io::file_identity> bin = {};  ///< identity of the `.bin` when the run was built
  gpt_plan plan;
  gpt_index_view index;                 ///< if the index was built in memory
  std::optional<gpt_cache> cache = {};  ///< if the index was read from a cache
};

/// An open source.
struct megatron_run::open_source {
  /// @throws as `open`
  explicit open_source(const source_info& of);
  open_source(const open_source&) = delete;
  open_source& operator=(const open_source&) = delete;

  document_search search;
  gpt_order order;  // refers to the columns of `search`
};

}  // namespace millrace::dataset
