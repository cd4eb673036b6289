// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::tokenizer::detail {

/// The names that `transformers` has for control tokens.
inline constexpr std::array<const char*, 7> token_names = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

/// What a class of `transformers` calls a token unless a file of the folder says otherwise.
struct class_token {
  std::string_view name;
  std::string_view content;
  bool always;  ///< in release 4.57 too, which counts where it has one and 5.23 none
};

/// The names that a class gives, as the signatures of both releases have them.
/// @param stem  of its name (folder_class); of an unknown one there are none
std::vector<class_token> class_tokens(std::string_view stem);

/// Whether there is anything to say of it.
bool is_known_class(std::string_view stem);

/// Tokens without a name that a class adds if they are not there.
std::vector<std::string> class_extra_tokens(std::string_view stem);

}  // namespace millrace::tokenizer::detail
