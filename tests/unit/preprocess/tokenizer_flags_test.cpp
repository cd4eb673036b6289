// SPDX-License-Identifier: Apache-2.0
#include <millrace/tokenizer/tokenizer_flags.hpp>

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::tokenizer {
namespace {

tokenizer_options parsed(const std::vector<std::string>& words) {
  namespace po = boost::program_options;
  po::variables_map given;
  po::store(po::command_line_parser(words).options(tokenizer_flags()).run(), given);
  return tokenizer_options_of(given).value();
}

std::vector<std::string> with_type(std::vector<std::string> words) {
  words.emplace_back("--tokenizer-type=GPT2BPETokenizer");
  return words;
}

TEST(FlagsForFiles, GiveTheSameOptionsWhenTheyAreParsed) {
  tokenizer_options options;
  options.model = "a folder/-m = \"x\"";
  options.vocab_file = "--vocab";
  options.merge_file = "m";
  options.vocab_size = 7;
  options.vocab_extra_ids = 8;
  options.special_tokens = {"<a>", "b c", ""};
  options.eod_token = "</s>";
  options.tiktoken_pattern = "v1";
  options.tiktoken_num_special_tokens = 9;
  options.sentencepiece_legacy = true;
  options.sentencepiece_ignore_extra_whitespaces = false;
  options.hf_include_special_tokens = false;
  for (const auto policy :
       {special_tokens_in_text::as_reference, special_tokens_in_text::allow,
        special_tokens_in_text::encode_as_text, special_tokens_in_text::error}) {
    options.in_text = policy;
    const std::vector<std::string> words = flags_for_files(options);
    const tokenizer_options back = parsed(with_type(words));
    EXPECT_EQ(back.model, options.model);
    EXPECT_EQ(back.vocab_file, options.vocab_file);
    EXPECT_EQ(back.merge_file, options.merge_file);
    EXPECT_EQ(back.vocab_size, options.vocab_size);
    EXPECT_EQ(back.vocab_extra_ids, options.vocab_extra_ids);
    EXPECT_EQ(back.special_tokens, options.special_tokens);
    EXPECT_EQ(back.eod_token, options.eod_token);
    EXPECT_EQ(back.tiktoken_pattern, options.tiktoken_pattern);
    EXPECT_EQ(back.tiktoken_num_special_tokens, options.tiktoken_num_special_tokens);
    EXPECT_EQ(back.sentencepiece_legacy, options.sentencepiece_legacy);
    EXPECT_EQ(back.sentencepiece_ignore_extra_whitespaces,
              options.sentencepiece_ignore_extra_whitespaces);
    EXPECT_EQ(back.hf_include_special_tokens, options.hf_include_special_tokens);
    EXPECT_EQ(back.in_text, options.in_text);
  }
}

TEST(FlagsForFiles, LeaveOutWhatIsNotGiven) {
  tokenizer_options options;
  options.vocab_size = 7;
  EXPECT_TRUE(flags_for_files(options).empty());  // no file
  options.vocab_file = "v.json";
  options.cache = "cache";
  EXPECT_EQ(flags_for_files(options),
            (std::vector<std::string>{"--vocab-file=v.json", "--vocab-size=7"}));
}

}  // namespace
}  // namespace millrace::tokenizer
