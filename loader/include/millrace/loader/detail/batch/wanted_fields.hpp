// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace::loader {

/// The arrays that the loader makes on the host. In addition, each batch always has its text, with
/// tokens of type `token_width`.
struct host_fields {
  bool tokens = true;         ///< int64 [batch_size, seq_len]
  bool labels = true;         ///< int64 [batch_size, seq_len]
  bool loss_mask = false;     ///< float [batch_size, seq_len]
  bool position_ids = false;  ///< int64 [batch_size, seq_len]
  bool cu_seqlens = false;    ///< int32, one array for the concatenated rows of the micro-batch

  bool any() const noexcept { return tokens || labels || loss_mask || position_ids || cu_seqlens; }
};

/// Requests no arrays. Use this for batches that are copied to a device.
inline constexpr host_fields no_host_fields = {false, false, false, false, false};

}  // namespace millrace::loader
