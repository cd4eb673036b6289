// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include <millrace/error.hpp>
#include <millrace/loader/cuda/detail/dlpack.hpp>
#include <millrace/loader/cuda/device_batch.hpp>

namespace millrace::loader::cuda {

/// One array of a batch.
enum class batch_field : std::uint8_t {
  tokens,
  labels,
  position_ids,
  loss_mask,
  cu_seqlens,
  segment_ids,
  cu_seqlens_padded
};

/// Deletes a tensor as every DLPack owner does: calls the tensor's `deleter`.
struct end_tensor {
  template <class Managed>
  void operator()(Managed* managed) const noexcept {
    managed->deleter(managed);
  }
};
using dlpack_tensor = std::unique_ptr<dlpack::managed_tensor, end_tensor>;
using dlpack_versioned_tensor = std::unique_ptr<dlpack::versioned_tensor, end_tensor>;

namespace detail {

/// A tensor with its shape and strides, and an owner of the batch's slot. `end` is the tensor's
/// deleter and drops that owner. If the tensor was the slot's last holder, dropping the owner
/// records the release on the consumer's stream.
template <class Managed>
struct tensor_holder {
  Managed managed{};
  std::array<std::int64_t, 2> shape{};
  std::array<std::int64_t, 2> strides{};
  std::shared_ptr<const void> hold;

  static void end(Managed* self) noexcept { delete static_cast<tensor_holder*>(self->manager); }
};

template <class T>
void describe(dlpack::tensor& tensor, const T* array) {
  constexpr std::uint8_t code = static_cast<T>(0.5) != T{} ? 2 : 0;
  tensor.data = const_cast<T*>(array);  // DLPack has no const data; the consumer owns the arrays
  tensor.dtype = {code, static_cast<std::uint8_t>(8 * sizeof(T)), 1};
}

// Describes an array of ids, which has the batch's id type.
inline void describe_ids(dlpack::tensor& tensor, id_width ids, const std::int64_t* wide,
                         const std::int32_t* narrow) {
  if (ids == id_width::i32) return describe(tensor, narrow);
  describe(tensor, wide);
}

inline void describe(dlpack::tensor& tensor, const device_batch& batch, batch_field field) {
  switch (field) {
    case batch_field::tokens:
      return describe_ids(tensor, batch.ids(), batch.tokens(), batch.tokens<std::int32_t>());
    case batch_field::labels:
      return describe_ids(tensor, batch.ids(), batch.labels(), batch.labels<std::int32_t>());
    case batch_field::position_ids:
      return describe_ids(tensor, batch.ids(), batch.position_ids(),
                          batch.position_ids<std::int32_t>());
    case batch_field::loss_mask:
      return describe(tensor, batch.loss_mask());
    case batch_field::cu_seqlens:
      return describe(tensor, batch.cu_seqlens());
    case batch_field::segment_ids:
      return describe(tensor, batch.segment_ids());
    case batch_field::cu_seqlens_padded:
      return describe(tensor, batch.cu_seqlens_padded());
  }
}

template <class Managed>
std::unique_ptr<Managed, end_tensor> tensor_of(const device_batch& batch, batch_field field) {
  auto holder = std::make_unique<tensor_holder<Managed>>();
  dlpack::tensor& tensor = holder->managed.tensor;
  describe(tensor, batch, field);
  // A batch without rows has no boundaries, even if they were requested.
  const bool is_cu_seqlens =
      field == batch_field::cu_seqlens || field == batch_field::cu_seqlens_padded;
  const bool of_boundaries = is_cu_seqlens || field == batch_field::segment_ids;
  if (tensor.data == nullptr && !(of_boundaries && batch.rows() == 0)) {
    constexpr std::array names = {"tokens",     "labels",      "position_ids",     "loss_mask",
                                  "cu_seqlens", "segment_ids", "cu_seqlens_padded"};
    throw config_error(std::string("a tensor of ") + names[static_cast<std::size_t>(field)] +
                       " was requested, but wanted_fields excludes it");
  }
  tensor.device = {batch.on_device() ? dlpack::on_cuda : dlpack::on_cpu, batch.device()};
  holder->shape = {batch.rows(), batch.seq_len()};
  holder->strides = {batch.seq_len(), 1};
  tensor.ndim = 2;
  if (is_cu_seqlens) {
    holder->shape = {batch.cu_seqlens_size(), 0};
    holder->strides = {1, 0};
    tensor.ndim = 1;
  }
  tensor.shape = holder->shape.data();
  tensor.strides = holder->strides.data();
  holder->hold = batch.hold();
  holder->managed.manager = holder.get();
  holder->managed.deleter = tensor_holder<Managed>::end;
  return std::unique_ptr<Managed, end_tensor>(&holder.release()->managed);
}

}  // namespace detail

/// Returns an array of a batch as a DLPack tensor. Most tensors are [rows, seq_len], of int64 or
/// int32 (ids), int32 (segment_ids) or float32 (loss_mask). `cu_seqlens` and `cu_seqlens_padded`
/// are [cu_seqlens_size], of int32. The tensor keeps the batch's slot alive. Its deleter may be
/// called on any thread and does not wait. The consumer's stream, which was passed to `next()`, may
/// use the tensor at once.
///
/// Pass the result's `release()` to a capsule named "dltensor".
/// @throws config_error  the batch was made without this array
inline dlpack_tensor to_dlpack(const device_batch& batch, batch_field field) {
  return detail::tensor_of<dlpack::managed_tensor>(batch, field);
}

/// Like `to_dlpack`, but for a capsule named "dltensor_versioned".
inline dlpack_versioned_tensor to_dlpack_versioned(const device_batch& batch, batch_field field) {
  auto managed = detail::tensor_of<dlpack::versioned_tensor>(batch, field);
  managed->version = dlpack::published;
  return managed;
}

}  // namespace millrace::loader::cuda
