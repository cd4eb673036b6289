// SPDX-License-Identifier: Apache-2.0
#include <millrace/meta/dataset_meta.hpp>

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include <millrace/error.hpp>
#include <millrace/formats/sum.hpp>

#include "support/paths.hpp"
#include "unit/formats/codec_quartet.hpp"

namespace millrace::formats {
namespace {

std::string golden_meta(const std::string& name) {
  return test::read_text(test::golden("sidecars/" + name + ".meta"));
}

dataset_meta parse_bytes(std::span<const std::byte> file) {
  return parse_meta({reinterpret_cast<const char*>(file.data()), file.size()});
}

test::bytes bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// Returns `text` with the first occurrence of `from` replaced by `to`.
std::string turned(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

/// Replaces `from` with `to` in preprocess_lines.meta. Expects that the result is refused, with an
/// error at the byte where `place` begins.
void refused(const std::string& from, const std::string& to, const std::string& place,
             const std::string& problem, const std::string& name = "preprocess_lines") {
  const std::string text = turned(golden_meta(name), from, to);
  SCOPED_TRACE(to);
  test::expect_refused(parse_bytes, bytes_of(text), text.find(place), problem);
}

// Reads the golden file, which golden/sidecars/generate.py wrote from the specification.
TEST(ParseMeta, ReadsTheGoldenFile) {
  const dataset_meta meta = parse_meta(golden_meta("preprocess_lines"));
  EXPECT_EQ(meta.level, "document");
  EXPECT_EQ(meta.key, "text");
  EXPECT_EQ(meta.path, "text");
  EXPECT_EQ(meta.type, dtype::uint16);
  EXPECT_FALSE(meta.append_eod);
  EXPECT_EQ(meta.on_bad_record, "skip");
  ASSERT_EQ(meta.options.size(), 1U);
  EXPECT_EQ(meta.options[0], std::pair(std::string("special_tokens"), std::string("as-text")));
  EXPECT_EQ(meta.tokenizer.type, "ByteLevelTokenizer");
  EXPECT_EQ(meta.tokenizer.fingerprint, sha256_hex("type ByteLevelTokenizer\n"));
  EXPECT_EQ(meta.tokenizer.vocab_size, 512);
  EXPECT_EQ(meta.tokenizer.eod, 0);
  EXPECT_EQ(meta.sum_version, 1);
  EXPECT_EQ(meta.src_version, 1);
  EXPECT_EQ(meta.tasks, std::nullopt);
  const auto text = test::read_bytes(test::golden("megatron/preprocess_lines.jsonl"));
  ASSERT_EQ(meta.inputs.size(), 1U);
  EXPECT_EQ(meta.inputs[0],
            (input_extent{"preprocess_lines.jsonl", 0, text.size(), crc32c(text), 18}));
  EXPECT_EQ(meta.counts.documents, 18);
  EXPECT_EQ(meta.counts.empty_documents, 3);
  EXPECT_EQ(meta.counts.tokens, 282);
  EXPECT_EQ(meta.counts.bad_records.size(), 6U);
  EXPECT_EQ(meta.bin_bytes, 564U);
  ASSERT_TRUE(meta.sum_root);
  EXPECT_EQ(meta.sum_root->size(), 64U);
}

TEST(ToJson, MakesTheGoldenFiles) {
  for (const char* name :
       {"preprocess_lines", "twice", "twice_1_of_3", "twice_1_of_6", "strange"}) {
    const std::string file = golden_meta(name);
    EXPECT_EQ(to_json(parse_meta(file)), file) << name;
  }
}

TEST(ToJson, PutsTheShareOfATask) {
  dataset_meta meta = parse_meta(golden_meta("twice_1_of_3"));
  meta.tasks->share = share_bounds{{3, 0}, {3, 4096}, 0xABC};
  const std::string share =
      R"(, "share": {"begin_input": 3, "begin_byte": 0, "end_input": 3, "end_byte": 4096, )"
      R"("names_crc32c": "00000abc"}})";
  const std::string json = to_json(meta);
  EXPECT_EQ(json, turned(golden_meta("twice_1_of_3"), R"("of": 3})", R"("of": 3)" + share));
  EXPECT_EQ(parse_meta(json), meta);
  for (const auto& [from, to, problem] :
       {std::tuple("\"end_byte\": 4096, ", "", "has no entry 'end_byte'"),
        std::tuple("\"end_input\": 3", "\"end_input\": 2",
                   "begins at byte 0 of input 3, and ends at byte 4096 of input 2"),
        std::tuple("00000abc", "ABC", "\"names_crc32c\" is not 8 lowercase hexadecimal digits")}) {
    try {
      (void)parse_meta(turned(json, from, to));
      ADD_FAILURE() << "accepted " << to;
    } catch (const format_error& e) {
      EXPECT_NE(std::string(e.what()).find(problem), std::string::npos) << e.what();
    }
  }
}

TEST(ToJson, PutsTheUnitOfAnInputOfRows) {
  dataset_meta meta = parse_meta(golden_meta("twice_1_of_3"));
  meta.inputs.at(0).has_rows = true;
  EXPECT_EQ(meta.inputs[0].end(), 86U + 15);  // 15 lines from the begin on
  const std::string json = to_json(meta);
  EXPECT_EQ(json,
            turned(golden_meta("twice_1_of_3"), "\"begin\"", "\"unit\": \"rows\", \"begin\""));
  EXPECT_EQ(parse_meta(json), meta);
}

TEST(ToJson, PutsTheFlagsOfATokenizer) {
  dataset_meta meta = parse_meta(golden_meta("preprocess_lines"));
  EXPECT_TRUE(meta.tokenizer.flags.empty());
  meta.tokenizer.flags = {"--vocab-file=a \"b\"/vocab.json", "--merge-file=caf\xE9"};
  const std::string json = to_json(meta);
  EXPECT_NE(json.find(R"("eod": 0, "flags": ["--vocab-file=a \"b\"/vocab.json", )"
                      R"("--merge-file=caf\udce9"]})"),
            std::string::npos)
      << json;
  EXPECT_EQ(parse_meta(json).tokenizer.flags, meta.tokenizer.flags);
  EXPECT_EQ(meta_bytes(meta), json.size());
  EXPECT_EQ(parse_meta(json), parse_meta(golden_meta("preprocess_lines")));  // the same tokenizer
  const std::string_view eod = R"("eod": 0)";
  for (const auto& [flags, place, problem] :
       {std::tuple(R"(, "flags": [])", "\"flags\"", "\"flags\" is empty"),
        std::tuple(R"(, "flags": "--vocab-file=a")", "\"flags\"", "\"flags\" is not an array"),
        std::tuple(R"(, "flags": ["a", 1])", "1]", "a flag of the tokenizer is not a string")}) {
    refused(std::string(eod), std::string(eod) + flags, place, problem);
  }
}

// In file names that are not UTF-8, bytes are escaped as by Python's os.fsdecode() and
// json.dumps(). So reading the file gives the name back.
TEST(ToJson, EscapesBytesOfNamesThatAreNotUtf8) {
  dataset_meta meta = parse_meta(golden_meta("preprocess_lines"));
  meta.inputs[0].path = "caf\xE9 \xC3\xA9 \x80\xFF\xED\xB2\x80.jsonl";
  const std::string json = to_json(meta);
  EXPECT_NE(json.find("\"caf\\udce9 \xC3\xA9 \\udc80\\udcff\\udced\\udcb2\\udc80.jsonl\""),
            std::string::npos)
      << json;
  EXPECT_EQ(parse_meta(json), meta);
}

TEST(IsPathOf, TakesNamesOfEarlierVersions) {
  EXPECT_TRUE(is_path_of("caf\xE9.jsonl", "caf\xE9.jsonl"));
  EXPECT_TRUE(is_path_of("caf\xEF\xBF\xBD.jsonl", "caf\xE9.jsonl"));
  EXPECT_TRUE(is_path_of("\xEF\xBF\xBD\xEF\xBF\xBD", "\xFF\xFE"));
  EXPECT_TRUE(is_path_of("", ""));
  EXPECT_FALSE(is_path_of("\xEF\xBF\xBD", "e"));
  EXPECT_FALSE(is_path_of("\xEF\xBF\xBD", "\xFF\xFE"));
  EXPECT_FALSE(is_path_of("\xEF\xBF\xBDx", "\xFF"));
  EXPECT_FALSE(is_path_of("a", ""));
}

TEST(ParseMeta, RefusesEveryTruncation) {
  std::string file = golden_meta("twice_1_of_3");
  file.pop_back();  // the final newline is optional
  test::expect_every_truncation_refused(parse_bytes, bytes_of(file));
}

TEST(ParseMeta, RefusesExtraBytes) {
  const std::string file = golden_meta("preprocess_lines");
  for (const char* more : {"x", "{}", ",", "}"}) {
    EXPECT_TRUE(test::refusal(parse_bytes, bytes_of(file + more))) << more;
  }
}

TEST(ParseMeta, TakesEntriesInAnyOrderAndSpaces) {
  const std::string file = golden_meta("preprocess_lines");
  std::string other = turned(file, "\"level\": \"document\", ", "");
  other = turned(other, "\"bin_bytes\": ", "\n\t\"level\"  :\"document\",\"bin_bytes\":");
  EXPECT_EQ(parse_meta(other), parse_meta(file));
}

TEST(ParseMeta, SurvivesEveryAlteredByte) {
  EXPECT_GT(test::survive_every_alteration(parse_bytes, bytes_of(golden_meta("twice_1_of_3"))), 0U);
}

TEST(ParseMeta, RefusesOtherVersions) {
  for (const char* version : {"0", "2", "9223372036854775807"}) {
    refused("\"millrace_meta\": 1", std::string("\"millrace_meta\": ") + version,
            "\"millrace_meta\"", std::string("expected .meta version 1, found ") + version);
  }
  refused("\"millrace_meta\": 1", "\"millrace_meta\": \"1\"", "\"millrace_meta\"",
          "not an integer");
  refused("\"millrace_meta\": 1, ", "", "{", "the .meta has no entry 'millrace_meta'");
}

TEST(ParseMeta, RefusesWhatIsMissingUnknownOrThereTwice) {
  test::expect_refused(parse_bytes, bytes_of(""), 0, "the file is empty");
  test::expect_refused(parse_bytes, bytes_of("[]"), 0, "the .meta is not an object");
  for (const char* key : {"level", "key", "path", "dtype", "append_eod", "on_bad_record", "options",
                          "sum", "src", "tasks", "inputs", "counts", "bin_bytes", "sum_root"}) {
    const std::string quoted = '"' + std::string(key) + "\": ";
    const std::string other = "\"other\": ";
    if (key == std::string("path")) continue;  // inputs have a "path", too; see below
    refused(quoted, other, "{", "the .meta has no entry '" + std::string(key) + "'");
  }
  refused("\"path\": \"text\"", "\"other\": 1", "{", "the .meta has no entry 'path'");
  refused("\"level\"", "\"other\": 1, \"level\"", "\"other\"", "has an unknown entry, 'other'");
  refused("\"vocab_size\"", "\"other\": 1, \"vocab_size\"", "\"other\"",
          "\"tokenizer\" has an unk");
  refused("\"text_bytes\"", "\"other\": 1, \"text_bytes\"", "\"other\"", "an input has an unknown");
  refused("\"blank_lines\"", "\"other\": 1, \"blank_lines\"", "\"other\"",
          "\"counts\" has an unkn");
  refused("\"level\"", "\"sum\": 1, \"level\"", "\"sum\": 1, \"src\"", "each name once");
  refused("\"not_an_object\"", "\"invalid_json\"", "\"invalid_json\": 0, \"missing_key\"",
          "each name once");
}

TEST(ParseMeta, RefusesValuesOfAnotherKind) {
  refused("\"document\"", "\"page\"", "\"level\"", "neither \"document\" nor \"sentence\"");
  refused("\"document\"", "1", "\"level\"", "\"level\" is not a string");
  refused("\"uint16\"", "\"uint32\"", "\"dtype\"", "not one of the eight");
  refused("\"append_eod\": false", "\"append_eod\": 0", "\"append_eod\"", "neither true nor false");
  refused("\"as-text\"", "7", "\"special_tokens\": 7", "an option is not a string");
  refused("\"vocab_size\": 512", "\"vocab_size\": -1", "\"vocab_size\"", "not an integer of 0..");
  refused("\"vocab_size\": 512", "\"vocab_size\": 1.0", "\"vocab_size\"", "not an integer of 0..");
  refused("\"eod\": 0", "\"eod\": 512", "\"eod\"",
          "\"eod\" is 512, but the vocabulary has 512 ids");
  refused("\"sum\": 1", "\"sum\": true", "\"sum\"", "\"sum\" is not an integer");
  refused("\"tasks\": null", "\"tasks\": []", "\"tasks\"", "\"tasks\" is not an object");
  refused("\"crc32c\": \"23e2", "\"crc32c\": \"23E2", "\"crc32c\"", "not 8 lowercase hexadecimal");
  refused("\"crc32c\": \"23e2", "\"crc32c\": \"3e2", "\"crc32c\"", "not 8 lowercase hexadecimal");
  refused("\"text_bytes\": 741", "\"unit\": \"bytes\", \"text_bytes\": 741", "\"unit\"",
          "\"unit\" of an input is not \"rows\"");
  refused("\"lines\": 18}", "\"lines\": 9223372036854775808}", "\"lines\"",
          "not an integer of 0..");
  refused("\"invalid_json\": 0", "\"invalid_json\": null", "\"invalid_json\"", "not an integer of");
  refused("\"sum_root\": \"1", "\"sum_root\": \"", "\"sum_root\"", "not 64 lowercase hexadecimal");
}

TEST(ParseMeta, RefusesEntriesThatContradictEachOther) {
  refused("\"bin_bytes\": 564", "\"bin_bytes\": 563", "\"bin_bytes\"",
          "is 563, but there are 282 tokens of 2 bytes each");
  refused("\"bin_bytes\": 564", "\"bin_bytes\": 566", "\"bin_bytes\"",
          "is 566, but there are 282 tokens");
  refused("\"sum\": 1", "\"sum\": null", "{", "or null for both");
  refused("\"first\": 1, \"last\": 1", "\"first\": 2, \"last\": 1", "\"tasks\"",
          "\"tasks\" is 2 to 1 of 3, expected 0 <= first <= last < of", "twice_1_of_3");
  refused("\"of\": 3", "\"of\": 1", "\"tasks\"", "\"tasks\" is 1 to 1 of 1", "twice_1_of_3");
  refused("\"first\": 1, \"last\": 1", "\"first\": 0, \"last\": 2", "\"tasks\"",
          "\"tasks\" covers all tasks, expected null", "twice_1_of_3");
  refused("\"first\": 1", "\"first\": 0", "{\"path\"", "but there is no earlier task",
          "twice_1_of_3");
  refused("\"begin\": 86", "\"begin\": 0", "\"begin\"", "expected this entry only if it is above 0",
          "twice_1_of_3");
  refused("\"begin\": 86", "\"begin\": 9223372036854775807", "\"text_bytes\"",
          ", expected at most 2^63 - 1", "twice_1_of_3");
  refused("\"text_bytes\": 99", "\"begin\": 5, \"text_bytes\": 99",
          "{\"path\": \"preprocess_lines.jsonl\", \"begin\": 5", "but it is not the first",
          "twice_1_of_3");
}

}  // namespace
}  // namespace millrace::formats
