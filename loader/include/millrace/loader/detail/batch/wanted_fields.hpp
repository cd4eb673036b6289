// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace::loader {

/// The arrays that the loader makes on the host. In addition, each batch always has its text, with
/// tokens of type `token_width`.
struct host_fields {
  bool tokens = true;         ///< int64 [batch_size, seq_len]
  bool labels = true;         ///< int64 [batch_size, seq_len]
  bool loss_mask = false;     ///< float [batch_size, seq_len]
  bool position_ids = false;  ///< int64 [batch_size, seq_len]
  bool cu_seqlens = false;    ///< int32, one array for the concatenated rows of the micro-batch
  /// Packed rows only. The same array. If both are requested, `cu_seqlens` does not count padding.
  bool cu_seqlens_padded = false;

  bool any() const noexcept {
    return tokens || labels || loss_mask || position_ids || has_cu_seqlens();
  }
  bool has_cu_seqlens() const noexcept { return cu_seqlens || cu_seqlens_padded; }
};

/// Requests no arrays. Use this for batches that are copied to a device.
inline constexpr host_fields no_host_fields = {false, false, false, false, false, false};

/// What the bits of PREFIX.mask mean for `loss_mask` (formats/spec/mask.md). In no case does the
/// loss count at the last token of a document, whose label is not part of the document.
enum class mask_alignment : std::uint8_t {
  label,   ///< the loss counts where the label is trained, as in Megatron-LM and Megatron-Bridge
  input,   ///< the loss counts where the input is trained, as in Megatron-LM's pull request 5017
  ignored  ///< masks are not read: the loss counts everywhere
};

}  // namespace millrace::loader
