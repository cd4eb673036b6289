// SPDX-License-Identifier: Apache-2.0
//
// What a megatron_run is made of: for the library itself and its tests.
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

/// Which dataset each sample of a blend is of, and which of its samples it is.
struct blend_columns {
  std::vector<std::int16_t> dataset;
  std::vector<std::int64_t> sample;
};

/// What is known of a source without opening it again.
struct megatron_run::source_info {
  std::filesystem::path prefix;
  std::string whose;  ///< "the train part of PREFIX", for messages
  formats::dtype type = formats::dtype::uint16;
  std::int64_t tokens = 0;
  std::int64_t sequences = 0;
  std::optional<io::file_identity> bin = {};  ///< the `.bin` beside the index
  gpt_plan plan;
  gpt_index_view index;                 ///< where it was built
  std::optional<gpt_cache> cache = {};  ///< else
};

/// A source, opened.
struct megatron_run::open_source {
  /// @throws as `open`
  explicit open_source(const source_info& of);
  open_source(const open_source&) = delete;
  open_source& operator=(const open_source&) = delete;

  document_search search;
  gpt_order order;  // into search's columns
};

}  // namespace millrace::dataset
