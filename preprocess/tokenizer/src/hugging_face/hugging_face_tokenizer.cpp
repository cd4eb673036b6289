// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/hugging_face_tokenizer.hpp"

#include <string>
#include <string_view>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/formats/sha256.hpp>
#include <millrace/io/file_mapping.hpp>

#include "composed/composed_tokenizer.hpp"
#include "hugging_face/tokenizer_file.hpp"
#include "unicode/unicode_classes.hpp"

namespace millrace::tokenizer::detail {
namespace {

// Real files have a few megabytes; what is larger was given by mistake, and reading it would take
// many times its size.
constexpr std::size_t max_file_bytes = std::size_t{1} << 30;

std::string_view text_of(const io::file_mapping& file) {
  const auto bytes = file.bytes();
  if (bytes.size() > max_file_bytes) {
    throw format_error(max_file_bytes, "the file is too large for a tokenizer's");
  }
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string identity_of(const hugging_face_options& options) {
  return std::string("type HuggingFaceTokenizer\n") + "include_special_tokens " +
         (options.include_special_tokens ? "yes" : "no") + "\nin_text " +
         std::to_string(static_cast<int>(options.in_text)) + "\nunicode " + unicode_version + "\n";
}

std::unique_ptr<tokenizer> make_of_file(const std::filesystem::path& path,
                                        const hugging_face_options& options) {
  const io::file_mapping mapping(path);
  try {
    const std::string_view text = text_of(mapping);
    tokenizer_file file(text);
    tokenizer_parts parts = file.make_parts(options);
    parts.fingerprint =
        formats::sha256_hex(identity_of(options) + "file " + formats::sha256_hex(text) + "\n");
    return std::make_unique<composed_tokenizer>(std::move(parts));
  } catch (const format_error& e) {
    throw e.in(path);
  } catch (const config_error& e) {
    throw config_error(path.string() + ": " + e.what());
  }
}

}  // namespace

std::unique_ptr<tokenizer> make_hugging_face_tokenizer(const std::filesystem::path& file_or_folder,
                                                       const hugging_face_options& options) {
  return make_of_file(file_or_folder, options);
}

}  // namespace millrace::tokenizer::detail
