// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/instant/document_search.hpp>
#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/detail/open_pool.hpp>

namespace millrace::dataset {

/// The `.idx` files of many datasets. The pool opens each file on first use and keeps a bounded
/// number of files open. Thread-safe, like `open_pool`.
class source_pool {
 public:
  using source_pointer = std::shared_ptr<const document_search>;

  /// @param prefixes  paths without `.bin` and `.idx`
  /// @param most_open  maximum number of `.idx` files that are kept open
  /// @throws config_error  `most_open` is below 1.
  explicit source_pool(std::vector<std::filesystem::path> prefixes, std::size_t most_open = 512)
      : prefixes_(std::move(prefixes)),
        pool_(
            size(),
            [this](std::int64_t source) {
              return std::make_shared<const document_search>(index_columns(prefix(source)));
            },
            most_open) {}

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(prefixes_.size()); }
  const std::filesystem::path& prefix(std::int64_t source) const noexcept {
    return prefixes_[static_cast<std::size_t>(source)];
  }

  /// Returns the open `.idx` file of a source. Opens it first if necessary.
  ///
  /// @pre 0 <= source < size()
  /// @throws io_error, format_error  as `index_columns`. The next call tries to open the file
  /// again.
  source_pointer get(std::int64_t source) { return pool_.get(source); }

  /// Number of `.idx` files that the pool keeps open. Evicted files that callers still hold do not
  /// count.
  std::size_t open_count() const { return pool_.open_count(); }

 private:
  std::vector<std::filesystem::path> prefixes_;
  open_pool<document_search> pool_;
};

}  // namespace millrace::dataset
