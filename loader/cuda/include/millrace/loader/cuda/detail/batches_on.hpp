// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include <millrace/loader/cuda/detail/cuda_api.hpp>
#include <millrace/loader/cuda/device_batch.hpp>

namespace millrace::loader::cuda {

/// The batches of a pipe or loader, for a consumer that works on one stream. The pipe or loader
/// must outlive this view.
///
/// Each loop iteration destroys the batch of the previous iteration, unless the caller moved it
/// out.
///
/// @tparam Source  a class with `next(stream)`, which returns `std::optional<device_batch>`
template <class Source>
class batches_on {
 public:
  class iterator {
   public:
    iterator(Source& source, stream on) : source_(&source), on_(on), batch_(source.next(on)) {}
    device_batch& operator*() noexcept { return *batch_; }
    device_batch* operator->() noexcept { return &*batch_; }
    iterator& operator++() {
      batch_.reset();  // before the call of `next`, so that one slot is enough
      batch_ = source_->next(on_);
      return *this;
    }
    /// True if there are no more batches.
    friend bool operator==(const iterator& it, std::nullptr_t) noexcept { return !it.batch_; }

   private:
    Source* source_;
    stream on_;
    std::optional<device_batch> batch_;
  };

  batches_on(Source& source, stream on) noexcept : source_(&source), on_(on) {}

  /// Like the source's `next`.
  std::optional<device_batch> next() { return source_->next(on_); }

  iterator begin() { return iterator(*source_, on_); }
  static std::nullptr_t end() noexcept { return nullptr; }

 private:
  Source* source_;
  stream on_;
};

}  // namespace millrace::loader::cuda
