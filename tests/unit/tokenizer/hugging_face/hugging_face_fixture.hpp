// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

#include "hugging_face/hugging_face_tokenizer.hpp"
#include "support/encode.hpp"
#include "support/paths.hpp"

/// Small, handwritten tokenizers in Hugging Face's format.
namespace millrace::tokenizer::detail {

using ids_list = std::vector<std::int32_t>;
using test::encode;
using testing::HasSubstr;
using testing::ThrowsMessage;

inline constexpr std::string_view word_level =
    R"("model":{"type":"WordLevel","unk_token":"?","vocab":{"?":0,"a":1,"b":2}})";
inline constexpr std::string_view white_space = R"("pre_tokenizer":{"type":"WhitespaceSplit"},)";

inline std::string added(std::string_view content, std::string_view flags = "") {
  std::string token = R"({"id":9,"content":")" + std::string(content) + R"(")";
  for (const std::string_view flag : {"single_word", "lstrip", "rstrip", "normalized", "special"}) {
    const bool set = flags.find(flag) != std::string_view::npos;
    token += ",\"" + std::string(flag) + "\":" + (set ? "true" : "false");
  }
  return token + "}";
}

class HuggingFaceTokenizer : public testing::Test {
 protected:
  std::unique_ptr<tokenizer> make(std::string_view json, const hugging_face_options& options = {}) {
    test::write_text(folder_ / "tokenizer.json", json);
    return make_hugging_face_tokenizer(folder_ / "tokenizer.json", options);
  }
  // Loads the folder with a tokenizer.json and a config.
  std::unique_ptr<tokenizer> make_folder(std::string_view json, std::string_view config,
                                         const hugging_face_options& options = {}) {
    test::write_text(folder_ / "tokenizer.json", json);
    test::write_text(folder_ / "tokenizer_config.json", config);
    return make_hugging_face_tokenizer(folder_.path(), options);
  }
  // Expects that `json` is refused with the message `problem`, at the byte where the text `at`
  // begins.
  void expect_refused(const std::string& json, const std::string& problem, std::string_view at) {
    SCOPED_TRACE(json);
    const std::string where = "(at byte " + std::to_string(json.find(at)) + ")";
    EXPECT_THAT([&] { (void)make(json); },
                ThrowsMessage<format_error>(testing::AllOf(HasSubstr("tokenizer.json: "),
                                                           HasSubstr(problem), HasSubstr(where))));
  }

  test::temp_folder folder_;
};

inline std::string json_of(std::string_view model, std::string_view more = "") {
  return "{" + std::string(more) + std::string(model) + "}";
}

}  // namespace millrace::tokenizer::detail
