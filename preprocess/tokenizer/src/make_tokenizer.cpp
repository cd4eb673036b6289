// SPDX-License-Identifier: Apache-2.0
#include <millrace/tokenizer/make_tokenizer.hpp>

#include <array>
#include <string_view>

#include <millrace/error.hpp>

#include "gpt2/gpt2_tokenizer.hpp"
#include "hugging_face/hugging_face_tokenizer.hpp"
#include "simple/byte_level_tokenizer.hpp"
#include "simple/null_tokenizer.hpp"

namespace millrace::tokenizer {
namespace {

// One type: the options it takes, every one of which it needs, and how to build it.
struct known_type {
  std::string_view name;
  bool model;
  bool vocab_file;
  bool merge_file;
  bool vocab_size;
  std::unique_ptr<tokenizer> (*make)(const tokenizer_options&);
};

std::unique_ptr<tokenizer> make_byte_level(const tokenizer_options&) {
  return std::make_unique<detail::byte_level_tokenizer>();
}
std::unique_ptr<tokenizer> make_null(const tokenizer_options& options) {
  return std::make_unique<detail::null_tokenizer>(options.vocab_size.value());
}
std::unique_ptr<tokenizer> make_gpt2(const tokenizer_options& options) {
  return detail::make_gpt2_tokenizer(options.vocab_file, options.merge_file);
}

std::unique_ptr<tokenizer> make_hugging_face(const tokenizer_options& options) {
  return detail::make_hugging_face_tokenizer(options.model, {});
}

constexpr std::array known_types = {
    known_type{"ByteLevelTokenizer", false, false, false, false, make_byte_level},
    known_type{"NullTokenizer", false, false, false, true, make_null},
    known_type{"GPT2BPETokenizer", false, true, true, false, make_gpt2},
    known_type{"HuggingFaceTokenizer", true, false, false, false, make_hugging_face},
};

const known_type& type_of(const tokenizer_options& options) {
  std::string names;
  for (const known_type& known : known_types) {
    if (known.name == options.type) return known;
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  throw config_error("--tokenizer-type '" + options.type + "': unknown, expected one of " + names);
}

void check_option(const known_type& type, const char* flag, bool given, bool taken) {
  if (given == taken) return;
  throw config_error("--tokenizer-type " + std::string(type.name) +
                     (given ? " does not take " : " needs ") + flag);
}

}  // namespace

std::unique_ptr<tokenizer> make_tokenizer(const tokenizer_options& options) {
  const known_type& type = type_of(options);
  check_option(type, "--tokenizer-model", !options.model.empty(), type.model);
  check_option(type, "--vocab-file", !options.vocab_file.empty(), type.vocab_file);
  check_option(type, "--merge-file", !options.merge_file.empty(), type.merge_file);
  check_option(type, "--vocab-size", options.vocab_size.has_value(), type.vocab_size);
  return type.make(options);
}

}  // namespace millrace::tokenizer
