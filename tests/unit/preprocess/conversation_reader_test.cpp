// SPDX-License-Identifier: Apache-2.0
#include "record/conversation_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "record/block_encoder.hpp"
#include "support/conversations.hpp"
#include "support/seed.hpp"
#include "support/tokenizers.hpp"

namespace millrace::preprocess {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// --- which tokens are trained -------------------------------------------------------------------

std::string bits_of(const formats::bit_buffer& bits) {
  std::string text;
  for (std::uint64_t i = 0; i < bits.size(); ++i) text += bits.bits()[i] ? '1' : '0';
  return text;
}

// As transformers: for each span, all tokens from the first one with a byte in the span to the
// last.
std::string naive_bits(const std::vector<tokenizer::byte_span>& tokens,
                       const std::vector<chat::byte_span>& trained) {
  std::string bits(tokens.size(), '0');
  for (const auto& span : trained) {
    std::size_t first = tokens.size();
    std::size_t last = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      for (std::size_t byte = tokens[i].begin; byte < tokens[i].end; ++byte) {
        if (byte < span.begin || byte >= span.end) continue;
        first = std::min(first, i);
        last = i;
      }
    }
    for (std::size_t i = first; i <= last && i < tokens.size(); ++i) bits[i] = '1';
  }
  return bits;
}

TEST(TrainedTokens, AreThoseThatOverlapASpan) {
  const std::vector<tokenizer::byte_span> tokens = {{0, 2}, {2, 5}, {5, 5}, {5, 9}, {9, 10}};
  const auto bits = [&](const std::vector<chat::byte_span>& trained) {
    formats::bit_buffer out;
    (void)append_trained(tokens, trained, 0, out);
    return bits_of(out);
  };
  EXPECT_EQ(bits({}), "00000");
  EXPECT_EQ(bits({{2, 5}}), "01000");
  EXPECT_EQ(bits({{4, 6}}), "01110");
  EXPECT_EQ(bits({{0, 1}, {9, 10}}), "10001");
  EXPECT_EQ(bits({{5, 6}, {7, 8}}), "00010");
  EXPECT_EQ(bits({{10, 12}}), "00000");
}

TEST(TrainedTokens, AgreeWithALoopOverBytes) {
  std::mt19937_64 random(test::seed(5));
  for (int round = 0; round < 20'000; ++round) {
    std::vector<tokenizer::byte_span> tokens;
    std::size_t at = 0;
    while (tokens.size() < 12) {
      const std::size_t size = random() % 4;
      tokens.push_back({at, at + size});
      if (size != 0 && random() % 5 == 0) tokens.push_back(tokens.back());  // bytes of a character
      at += size + (random() % 4 == 0 ? random() % 3 : 0);
    }
    std::vector<chat::byte_span> trained;
    for (std::size_t byte = random() % 5; byte < at + 3 && trained.size() < 4;) {
      trained.push_back({byte, byte + 1 + random() % 4});
      byte = trained.back().end + 1 + random() % 5;
    }
    formats::bit_buffer out;
    const std::int64_t count = append_trained(tokens, trained, 0, out);
    const std::string expected = naive_bits(tokens, trained);
    ASSERT_EQ(bits_of(out), expected);
    ASSERT_EQ(count, std::ranges::count(expected, '1'));
  }
}

TEST(TrainedTokens, MayBeginAfterAHeader) {
  const std::vector<tokenizer::byte_span> tokens = {{0, 2}, {2, 5}, {5, 9}, {9, 10}, {10, 12}};
  const auto bits = [&](const std::vector<chat::byte_span>& trained, std::size_t skipped) {
    formats::bit_buffer out;
    const std::int64_t count = append_trained(tokens, trained, skipped, out);
    EXPECT_EQ(count, static_cast<std::int64_t>(out.bits().count(0, out.size())));
    return bits_of(out);
  };
  EXPECT_EQ(bits({{0, 10}}, 3), "00010");
  EXPECT_EQ(bits({{0, 5}, {5, 12}}, 1), "01011");
  EXPECT_EQ(bits({{0, 5}, {5, 12}}, 2), "00001");
  EXPECT_EQ(bits({{2, 5}}, 3), "00000");
}

TEST(TrainedTokens, AreCertainIfNoneBelongsToTwoTurns) {
  const std::vector<tokenizer::byte_span> tokens = {{0, 2}, {2, 5}, {5, 9}};
  EXPECT_EQ(shared_token(tokens, {}), std::nullopt);
  EXPECT_EQ(shared_token(tokens, std::vector<chat::byte_span>{{0, 2}, {2, 9}}), std::nullopt);
  EXPECT_EQ(shared_token(tokens, std::vector<chat::byte_span>{{5, 12}}), std::nullopt);
  EXPECT_EQ(shared_token(tokens, std::vector<chat::byte_span>{{3, 5}}), 3U);
  EXPECT_EQ(shared_token(tokens, std::vector<chat::byte_span>{{0, 2}, {2, 6}}), 6U);
}

// --- records to documents with masks ------------------------------------------------------------

class ConversationEncoder : public testing::Test {
 protected:
  static constexpr std::string_view two_turns =
      R"({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]})";

  encoded_block encode(std::string_view lines, conversation_options conversations,
                       bool append_eod = false) const {
    encoder_options options{.keys = plain_keys({"messages"}),
                            .append_eod = std::nullopt,
                            .dtype = formats::dtype::uint16,
                            .on_bad_record = bad_record_policy::skip};
    options.conversations = std::make_shared<const conversation_options>(std::move(conversations));
    if (append_eod) options.append_eod = 0;
    byte_block block;
    block.text_bytes = lines.size();
    block.buffer.reserve(lines.size() + record_parser::padding_bytes, 0);
    std::memcpy(block.buffer.data(), lines.data(), lines.size());
    encoded_block out;
    block_encoder(*tokenizer_, options).encode(block, out);
    return out;
  }
  static std::string text_of(const encoded_column& column) {
    std::string text;
    for (std::size_t at = 0; at < column.ids_bytes; at += 2) {
      text += static_cast<char>(column.ids.data()[at]);
    }
    return text;
  }
  // The tokens are bytes. Those that are not trained become dots.
  static std::string trained_of(const encoded_column& column) {
    std::string text = text_of(column);
    EXPECT_EQ(text.size(), column.mask.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (!column.mask.bits()[i]) text[i] = '.';
    }
    return text;
  }
  static const record_fault& fault_of(const encoded_block& block) {
    return block.faults.at(0).fault;
  }

  std::unique_ptr<tokenizer::tokenizer> tokenizer_ = test::byte_tokenizer();
};

TEST_F(ConversationEncoder, MakesADocumentAndItsMask) {
  const auto out = encode(two_turns, test::plain_conversations());
  EXPECT_EQ(text_of(out.columns[0]), "<user>hi</><assistant>yo</>");
  EXPECT_EQ(trained_of(out.columns[0]), "...........<assistant>yo</>");
  EXPECT_THAT(out.columns[0].lengths, ElementsAre(27));
  EXPECT_THAT(out.columns[0].document_ends, ElementsAre(1));
  EXPECT_EQ(out.places.size(), 1U);
  EXPECT_EQ(out.counts.documents, 1);
  EXPECT_EQ(out.counts.text_bytes, 27);
}

TEST_F(ConversationEncoder, DoesNotTrainTheEndOfDocument) {
  const auto out = encode(two_turns, test::plain_conversations(), true);
  EXPECT_EQ(text_of(out.columns[0]), std::string("<user>hi</><assistant>yo</>\0", 28));
  EXPECT_EQ(trained_of(out.columns[0]), "...........<assistant>yo</>.");
}

TEST_F(ConversationEncoder, LeavesNothingOfABadRecord) {
  const std::string none = R"({"messages": [{"role": "user", "content": "hi"}]})";
  const std::string lines = none + "\n" + std::string(two_turns) + "\n{\"messages\": 7}\n[1]\nx\n" +
                            std::string(two_turns) + "\n" + none;
  const auto out = encode(lines, test::plain_conversations());
  EXPECT_EQ(trained_of(out.columns[0]), "...........<assistant>yo</>...........<assistant>yo</>");
  EXPECT_THAT(out.columns[0].document_ends, ElementsAre(1, 2));
  EXPECT_EQ(out.places.size(), 2U);
  EXPECT_EQ(out.places[1].line, 5);
  std::vector<fault_kind> kinds;
  for (const auto& each : out.faults) kinds.push_back(each.fault.kind);
  EXPECT_THAT(kinds, ElementsAre(fault_kind::untrained, fault_kind::bad_conversation,
                                 fault_kind::not_an_object, fault_kind::invalid_json,
                                 fault_kind::untrained));
}

TEST_F(ConversationEncoder, SaysWhatIsWrong) {
  const auto fault = [&](std::string_view line) {
    return fault_of(encode(line, test::plain_conversations()));
  };
  EXPECT_THAT(fault(R"({"messages": [{"role": "boss", "content": "a"}]})").what,
              HasSubstr("the role 'boss', which is unknown"));
  EXPECT_THAT(fault("{\"messages\": [\xFF]}").what, HasSubstr("not UTF-8"));
  const auto surrogate = fault(R"({"messages": [{"role": "user", "content": "\ud800"}]})");
  EXPECT_EQ(surrogate.kind, fault_kind::bad_conversation);
  EXPECT_THAT(surrogate.what, HasSubstr("surrogate"));
  auto refusing = test::plain_conversations();
  refusing.templates.usual = chat::chat_template::parse("{{ raise_exception('no') }}", "t.jinja");
  EXPECT_THAT(fault_of(encode(two_turns, refusing)).what,
              HasSubstr("the chat template failed: t.jinja, line 1: raise_exception: no"));
}

TEST_F(ConversationEncoder, HasThreeWaysWithOverlongConversations) {
  auto options = test::plain_conversations();
  options.most_tokens = 24;
  const auto refused = encode(two_turns, options);
  EXPECT_EQ(fault_of(refused).kind, fault_kind::overlong);
  EXPECT_EQ(fault_of(refused).what,
            "the conversation has 27 tokens, more than the 24 of --max-length");

  options.overlong = overlong_policy::drop;
  const auto dropped = encode(two_turns, options);
  EXPECT_TRUE(dropped.faults.empty());
  EXPECT_TRUE(dropped.places.empty());
  EXPECT_EQ(dropped.counts.overlong, 1);
  EXPECT_EQ(dropped.counts.documents, 0);

  options.overlong = overlong_policy::truncate;
  EXPECT_EQ(trained_of(encode(two_turns, options).columns[0]), "...........<assistant>yo");
  const auto cut = encode(two_turns, options, true);
  EXPECT_EQ(trained_of(cut.columns[0]), "...........<assistant>y.");
  EXPECT_EQ(cut.counts.truncated, 1);
  options.most_tokens = 11;
  EXPECT_EQ(fault_of(encode(two_turns, options)).what, "none of the first 11 tokens is trained");
  options.most_tokens = 27;
  EXPECT_EQ(encode(two_turns, options).counts.truncated, 0);
}

TEST_F(ConversationEncoder, RefusesTurnsOfTheAssistantThatAreNotStrict) {
  auto options = test::plain_conversations();
  options.training.strict_turns = true;
  EXPECT_EQ(trained_of(encode(two_turns, options).columns[0]), "...........<assistant>yo</>");
  const auto fault = [&](std::string_view line) { return fault_of(encode(line, options)).what; };
  EXPECT_EQ(fault(R"({"messages": [{"role": "assistant", "content": "a"}]})"),
            "message 0: a turn of the assistant must follow a user or a tool");
  EXPECT_EQ(fault(R"({"messages": [{"role": "user", "content": "a"}, )"
                  R"({"role": "assistant", "content": ""}]})"),
            "message 1: a turn of the assistant has no text");
}

TEST_F(ConversationEncoder, GivesTemplatesTheirVariablesAndTheDate) {
  auto options = test::plain_conversations();
  options.templates.usual = chat::chat_template::parse(
      "{{ bos_token }}{{ strftime_now('%d %b %Y') }}{% for m in messages %}{{ m.content }}"
      "{% endfor %}",
      "t.jinja");
  options.variables = {{"bos_token", "<s>"}};
  options.date = 1795737600;
  EXPECT_EQ(text_of(encode(two_turns, options).columns[0]), "<s>27 Nov 2026hiyo");
}

TEST_F(ConversationEncoder, TakesTheOtherTemplateForTools) {
  auto options = test::plain_conversations();
  options.templates.with_tools = chat::chat_template::parse(
      "{{ tools[0].name }}{% for m in messages %}{{ m.content }}{% endfor %}", "tools.jinja");
  const std::string tools = R"({"tools": [{"name": "f"}], "messages": [)"
                            R"({"role": "assistant", "content": "yo"}]})";
  EXPECT_EQ(trained_of(encode(tools, options).columns[0]), "fyo");
  EXPECT_EQ(text_of(encode(two_turns, options).columns[0]), "<user>hi</><assistant>yo</>");
}

}  // namespace
}  // namespace millrace::preprocess
