// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/sampler.hpp>
#include <millrace/error.hpp>
#include <millrace/loader/cuda/detail/array_copies.hpp>
#include <millrace/loader/cuda/detail/cuda_api.hpp>
#include <millrace/loader/cuda/detail/cuda_error.hpp>
#include <millrace/loader/cuda/detail/output_layout.hpp>

namespace millrace::loader::cuda {

/// The consumer's own arrays. Their addresses stay the same, as a CUDA graph requires. A null array
/// is not written.
struct static_arrays {
  std::int64_t rows = 0;  ///< rows of each array
  std::int64_t seq_len = 0;
  id_width ids = id_width::i64;  ///< type of tokens, labels and position ids

  // [rows, seq_len]
  void* tokens = nullptr;
  void* labels = nullptr;
  void* position_ids = nullptr;
  float* loss_mask = nullptr;
  std::int32_t* segment_ids = nullptr;

  std::int32_t* cu_seqlens = nullptr;
  std::int32_t* cu_seqlens_padded = nullptr;
  /// number of entries of each; equal to `wanted_fields::cu_seqlens_size`
  std::int64_t cu_seqlens_size = 0;

  friend bool operator==(const static_arrays&, const static_arrays&) = default;
};

/// One micro-batch that was written into static arrays, with the same facts about the batch as in
/// `device_batch`.
struct static_batch {
  std::int64_t rows = 0;  ///< number of rows written, starting at the first row
  std::int64_t cu_seqlens_used = 0;
  std::int32_t max_seqlen = 0;
  dataset::batch_number number;
  std::vector<std::int64_t> positions;  ///< [rows]
  std::vector<std::int64_t> sources;    ///< [rows]
};

namespace detail {

struct named_array {
  const char* name;
  const void* address;
  bool made;            // the pipe makes this array
  std::size_t element;  // size of one element in bytes
};

inline std::array<named_array, array_copies::most> named(const static_arrays& to,
                                                         const wanted_fields& fields) {
  const auto id = static_cast<std::size_t>(to.ids);
  return {{{"tokens", to.tokens, fields.tokens, id},
           {"labels", to.labels, fields.labels, id},
           {"position_ids", to.position_ids, fields.position_ids, id},
           {"loss_mask", to.loss_mask, fields.loss_mask, 4},
           {"segment_ids", to.segment_ids, fields.segment_ids, 4},
           {"cu_seqlens", to.cu_seqlens, fields.cu_seqlens, 4},
           {"cu_seqlens_padded", to.cu_seqlens_padded, fields.cu_seqlens_padded, 4}}};
}

inline std::string text_of(id_width ids) {
  return ids == id_width::i32 ? "int32" : "int64";
}

/// Checks the types, sizes and alignment of static arrays.
/// @throws config_error  an array does not fit, or the pipe does not make it
inline void refuse_misfit(const static_arrays& to, const slot_layout& largest,
                          const wanted_fields& fields) {
  const auto shape = [](std::int64_t rows, std::int64_t seq_len) {
    return "[" + std::to_string(rows) + ", " + std::to_string(seq_len) + "]";
  };
  if (to.seq_len != largest.seq_len() || to.rows < largest.rows()) {
    throw config_error("next_into: the static arrays are " + shape(to.rows, to.seq_len) +
                       ", expected " + shape(largest.rows(), largest.seq_len()) +
                       ", or more rows, because batches are that large");
  }
  const bool has_ids = to.tokens != nullptr || to.labels != nullptr || to.position_ids != nullptr;
  if (has_ids && to.ids != fields.ids) {
    throw config_error("next_into: the static arrays are for " + text_of(to.ids) +
                       " ids, expected " + text_of(fields.ids) + " as in wanted_fields::ids");
  }
  if ((to.cu_seqlens != nullptr || to.cu_seqlens_padded != nullptr) &&
      (to.cu_seqlens_size != fields.cu_seqlens_size || to.cu_seqlens_size == 0)) {
    throw config_error(
        "next_into: the static cu_seqlens has " + std::to_string(to.cu_seqlens_size) +
        " entries and wanted_fields::cu_seqlens_size is " + std::to_string(fields.cu_seqlens_size) +
        ", expected the same number, which is not 0");
  }
  for (const named_array& each : named(to, fields)) {
    if (each.address == nullptr) continue;
    const std::string which = std::string("next_into: the static array of ") + each.name;
    if (!each.made) {
      throw config_error(which + " cannot be written, because wanted_fields excludes " + each.name);
    }
    if (reinterpret_cast<std::uintptr_t>(each.address) % each.element != 0) {
      throw config_error(which + " is not aligned, expected an address that is a multiple of " +
                         std::to_string(each.element));
    }
  }
}

/// Checks that static arrays are on a device. The device must be current.
/// @throws config_error  an array is not on `device`
/// @throws cuda_error    the runtime call failed
inline void refuse_elsewhere(const cuda_api& api, const static_arrays& to,
                             const wanted_fields& fields, int device) {
  for (const named_array& each : named(to, fields)) {
    if (each.address == nullptr) continue;
    int found = -1;
    check(api, api.memory_device(each.address, &found), "cudaPointerGetAttributes");
    if (found == device) continue;
    throw config_error(std::string("next_into: the static array of ") + each.name + " is " +
                       (found < 0 ? "not on a device" : "on device " + std::to_string(found)) +
                       ", expected device " + std::to_string(device) + ", where the batches are");
  }
}

/// The copies that write a batch into static arrays.
inline array_copies copies_of(const batch_work& from, const static_arrays& to) {
  const std::int64_t elements = from.rows * from.seq_len;
  const std::int64_t id_bytes = elements * static_cast<std::int64_t>(from.ids);
  array_copies copies;
  copies.add(to.tokens, from.tokens, id_bytes);
  copies.add(to.labels, from.labels, id_bytes);
  copies.add(to.position_ids, from.position_ids, id_bytes);
  copies.add(to.loss_mask, from.loss_mask, 4 * elements);
  if (from.boundary_count == 0) return copies;
  copies.add(to.segment_ids, from.segment_ids, 4 * elements);
  copies.add(to.cu_seqlens, from.cu_seqlens, 4 * from.cu_seqlens_size);
  copies.add(to.cu_seqlens_padded, from.cu_seqlens_padded, 4 * from.cu_seqlens_size);
  return copies;
}

}  // namespace detail
}  // namespace millrace::loader::cuda
