// SPDX-License-Identifier: Apache-2.0
#include <millrace/meta/meta_concatenation.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <millrace/error.hpp>

#include "support/encode_sidecars.hpp"
#include "support/paths.hpp"

namespace millrace::formats {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

dataset_meta read_golden(const std::string& name) {
  return parse_meta(test::read_text(test::golden("sidecars/" + name + ".meta")));
}

std::string task_name(int task, int of) {
  return "twice_" + std::to_string(task) + "_of_" + std::to_string(of);
}

/// Returns the .meta of each task from `first` to `last`, for a run with `of` tasks. generate.py
/// wrote these files. The input of the tasks is one file that is listed twice.
std::vector<dataset_meta> tasks(int first, int last, int of) {
  std::vector<dataset_meta> parts;
  for (int task = first; task <= last; ++task) parts.push_back(read_golden(task_name(task, of)));
  return parts;
}

/// Adds the root, which is known only to a program that has written the files.
dataset_meta with_root(dataset_meta meta, const dataset_meta& of) {
  EXPECT_EQ(meta.sum_root, std::nullopt);
  meta.sum_root = of.sum_root;
  return meta;
}

void parts_refused(const std::vector<dataset_meta>& parts, const std::string& why) {
  try {
    (void)concatenate(parts);
    ADD_FAILURE() << "accepted, expected: " << why;
  } catch (const config_error& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr(why));
  }
}

// Joining all tasks gives the .meta that a single process writes. Tasks begin between the two input
// files and inside them. Some tasks have no input.
TEST(Concatenate, MakesOfAllTasksWhatOneProcessWrites) {
  const dataset_meta whole = read_golden("twice");
  for (const int of : {2, 3, 6}) {
    const auto parts = tasks(0, of - 1, of);
    EXPECT_EQ(to_json(with_root(concatenate(parts), whole)), to_json(whole)) << of << " tasks";
  }
}

TEST(Concatenate, MayGoByStages) {
  const dataset_meta whole = read_golden("twice");
  for (int cut = 1; cut < 6; ++cut) {
    const std::vector<dataset_meta> halves = {concatenate(tasks(0, cut - 1, 6)),
                                              concatenate(tasks(cut, 5, 6))};
    EXPECT_EQ(halves[0].tasks, (task_range{0, cut - 1, 6, std::nullopt}));
    EXPECT_EQ(halves[1].tasks, (task_range{cut, 5, 6, std::nullopt}));
    EXPECT_EQ(with_root(concatenate(halves), whole), whole) << cut;
  }
}

TEST(Concatenate, MakesOfUnrelatedRunsThatOverAllTheirInputs) {
  const dataset_meta once = read_golden("preprocess_lines");
  const dataset_meta twice = read_golden("twice");
  EXPECT_EQ(with_root(concatenate(std::vector{once, once}), twice), twice);
  EXPECT_EQ(with_root(concatenate(std::vector{once}), once), once);
}

// Suppose that a part was made with --partitions. Then the .meta of the joined dataset must not
// claim that the documents are in the order of a single run.
TEST(Concatenate, CallsPartitionsMixed) {
  const dataset_meta plain = read_golden("preprocess_lines");
  dataset_meta dealt = plain;
  dealt.options.emplace_back("--partitions", "2");
  dataset_meta wanted = read_golden("twice");
  wanted.sum_root.reset();
  wanted.options.emplace_back("--partitions", "mixed");
  EXPECT_EQ(concatenate(std::vector{dealt, dealt}), wanted);
  EXPECT_EQ(concatenate(std::vector{plain, dealt}), wanted);
  EXPECT_EQ(concatenate(std::vector{dealt, plain}), wanted);
  EXPECT_EQ(concatenate(std::vector{dealt}).options, dealt.options);
  dealt.options.front().second = "otherwise";
  parts_refused({plain, dealt}, "the options of part 2 are");
}

// One sample after another with the same rate and seed is the sample of all their inputs. Tasks of
// one run must have the same.
TEST(Concatenate, CallsDifferentSamplesMixed) {
  const dataset_meta all = read_golden("preprocess_lines");
  const auto sample = [&](const char* rate, const char* seed) {
    dataset_meta meta = all;
    meta.options.emplace_back("--sample-rate", rate);
    meta.options.emplace_back("--sample-seed", seed);
    return meta;
  };
  const auto options = [](const std::vector<dataset_meta>& parts) {
    return concatenate(parts).options;
  };
  const dataset_meta tenth = sample("0.1", "0");
  EXPECT_EQ(options({tenth, tenth, tenth}), tenth.options);
  const auto mixed = sample("mixed", "mixed").options;
  EXPECT_EQ(options({tenth, sample("0.2", "0")}), mixed);
  EXPECT_EQ(options({tenth, sample("0.1", "1"), tenth}), mixed);
  EXPECT_EQ(options({all, tenth}), mixed);
  EXPECT_EQ(options({tenth, all}), mixed);
  dataset_meta first = tenth;
  first.tasks = task_range{.first = 0, .last = 0, .of = 2, .share = {}};
  dataset_meta second = sample("0.1", "7");
  second.tasks = task_range{.first = 1, .last = 1, .of = 2, .share = {}};
  parts_refused({first, second}, "the options of part 2 are");
  second.options = tenth.options;
  EXPECT_EQ(options({first, second}), tenth.options);
}

// Variants of the same documents differ in their seed, and may be mixed with documents that are not
// permuted. Tasks of one run must have the same options.
TEST(Concatenate, CallsDifferentPermutationsMixed) {
  const dataset_meta all = read_golden("preprocess_lines");
  const auto variant = [&](const char* rate, const char* seed, bool sampled = false) {
    dataset_meta meta = all;
    meta.options.emplace_back("--fim-rate", rate);
    meta.options.emplace_back("--fim-spm-rate", "0.5");
    meta.options.emplace_back("--fim-seed", seed);
    if (sampled) meta.options.emplace_back("--sample-rate", "0.1");
    if (sampled) meta.options.emplace_back("--sample-seed", "0");
    return meta;
  };
  const auto options = [](const std::vector<dataset_meta>& parts) {
    return concatenate(parts).options;
  };
  const dataset_meta first = variant("0.9", "0");
  EXPECT_EQ(options({first, first, first}), first.options);
  EXPECT_EQ(options({first, variant("0.9", "1"), first}), variant("0.9", "mixed").options);
  EXPECT_EQ(options({first, variant("0.5", "0")}), variant("mixed", "0").options);
  const dataset_meta sampled = variant("0.9", "0", true);
  EXPECT_EQ(options({sampled, sampled}), sampled.options);
  EXPECT_EQ(options({sampled, variant("0.9", "1", true)}), variant("0.9", "mixed", true).options);
  auto mixed = all.options;
  for (const char* name : {"--fim-rate", "--fim-spm-rate", "--fim-seed"}) {
    mixed.emplace_back(name, "mixed");
  }
  EXPECT_EQ(options({all, first}), mixed);
  EXPECT_EQ(options({first, all}), mixed);
  dataset_meta one = first;
  one.tasks = task_range{.first = 0, .last = 0, .of = 2, .share = {}};
  dataset_meta two = variant("0.9", "1");
  two.tasks = task_range{.first = 1, .last = 1, .of = 2, .share = {}};
  parts_refused({one, two}, "the options of part 2 are");
  two.options = one.options;
  EXPECT_EQ(options({one, two}), first.options);
}

// A dataset that ends at a number of tokens, followed by another one, is not what a run would
// write.
TEST(Concatenate, CallsBudgetsMixed) {
  dataset_meta part = read_golden("preprocess_lines");
  const auto plain = part.options;
  part.options.emplace_back("--max-tokens", "100");
  part.options.emplace_back("stopped_before", "byte 7 of a");
  auto wanted = plain;
  wanted.emplace_back("--max-tokens", "mixed");
  wanted.emplace_back("stopped_before", "mixed");
  EXPECT_EQ(concatenate(std::vector{part, part}).options, wanted);
}

// Of tasks, all have one budget, which is then that of the whole. Only the last may have ended at
// it.
TEST(Concatenate, KeepsTheBudgetOfTasks) {
  std::vector<dataset_meta> parts = tasks(0, 2, 3);
  const auto plain = parts.front().options;
  for (dataset_meta& part : parts) part.options.emplace_back("--max-tokens", "100");
  auto wanted = plain;
  wanted.emplace_back("--max-tokens", "100");
  EXPECT_EQ(concatenate(parts).options, wanted);
  parts.back().options.emplace_back("stopped_before", "byte 7 of a");
  wanted.emplace_back("stopped_before", "byte 7 of a");
  EXPECT_EQ(concatenate(parts).options, wanted);

  const auto refusal = [](const std::vector<dataset_meta>& refused) {
    try {
      (void)concatenate(refused);
    } catch (const config_error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  auto early = parts;
  early.front().options = parts.back().options;
  EXPECT_EQ(refusal(early),
            "part 2 follows a task that ended at --max-tokens, so it is not part of the run");
  auto other = parts;
  other[1].options.back().second = "101";
  EXPECT_THAT(refusal(other), testing::HasSubstr("the options of part 2 are"));
  other[1].options.pop_back();
  EXPECT_THAT(refusal(other), testing::HasSubstr("the options of part 2 are"));
}

TEST(Concatenate, CallsShuffledPartsMixed) {
  const dataset_meta plain = read_golden("preprocess_lines");
  dataset_meta dealt = plain;
  dealt.options.emplace_back("--partitions", "2");
  dataset_meta shuffled = plain;
  shuffled.options.emplace_back("shuffle_documents", "7");
  dataset_meta both = dealt;
  both.options.emplace_back("shuffle_documents", "8");
  const auto options = [](const std::vector<dataset_meta>& parts) {
    return concatenate(parts).options;
  };
  auto wanted = plain.options;
  wanted.emplace_back("shuffle_documents", "mixed");
  EXPECT_EQ(options({shuffled}), shuffled.options);
  EXPECT_EQ(options({plain, shuffled}), wanted);
  EXPECT_EQ(options({shuffled, shuffled, plain}), wanted);
  wanted.insert(wanted.end() - 1, {"--partitions", "mixed"});
  EXPECT_EQ(options({shuffled, dealt}), wanted);
  EXPECT_EQ(options({plain, both, plain}), wanted);
}

TEST(Concatenate, KeepsASidecarThatAllPartsHave) {
  std::vector<dataset_meta> parts(2, read_golden("preprocess_lines"));
  parts[1].src_version.reset();
  const dataset_meta meta = concatenate(parts);
  EXPECT_EQ(meta.sum_version, 1);
  EXPECT_EQ(meta.src_version, std::nullopt);
}

// Of the whole, no more is known than of any part.
TEST(Concatenate, KeepsTheLargestVersionOfChecksums) {
  std::vector<dataset_meta> parts(2, read_golden("preprocess_lines"));
  parts[0].sum_version = 2;
  EXPECT_EQ(concatenate(parts).sum_version, 2);
  std::swap(parts[0], parts[1]);
  EXPECT_EQ(concatenate(parts).sum_version, 2);
  parts[0].sum_version.reset();
  EXPECT_EQ(concatenate(parts).sum_version, std::nullopt);
  std::swap(parts[0], parts[1]);
  EXPECT_EQ(concatenate(parts).sum_version, std::nullopt);
}

TEST(Concatenate, AddsUpTheTrainedTokensOfMasks) {
  std::vector<dataset_meta> parts(2, read_golden("preprocess_lines"));
  parts[0].mask = {.trained = 100, .root = std::string(64, 'a')};
  parts[1].mask = {.trained = 11, .root = std::string(64, 'b')};
  const auto mask = concatenate(parts).mask;
  ASSERT_TRUE(mask);
  EXPECT_EQ(mask->trained, 111);
  EXPECT_EQ(mask->root, "");
  parts[1].mask.reset();
  EXPECT_FALSE(concatenate(parts).mask);
}

TEST(ParseMeta, ReadsWhatItSaysOfAMask) {
  dataset_meta meta = read_golden("preprocess_lines");
  meta.mask = {.trained = 7, .root = std::string(64, '0')};
  EXPECT_EQ(parse_meta(to_json(meta)), meta);
  meta.mask->trained = meta.counts.tokens + 1;
  EXPECT_THROW((void)parse_meta(to_json(meta)), format_error);
  meta.mask = {.trained = 7, .root = "0"};
  EXPECT_THROW((void)parse_meta(to_json(meta)), format_error);
}

// Parts may be made on machines that keep the tokenizer in different folders.
TEST(Concatenate, KeepsFlagsOfTheTokenizerThatAllPartsHave) {
  std::vector<dataset_meta> parts(2, read_golden("preprocess_lines"));
  parts[0].tokenizer.flags = parts[1].tokenizer.flags = {"--vocab-file=a"};
  EXPECT_EQ(concatenate(parts).tokenizer.flags, parts[0].tokenizer.flags);
  parts[1].tokenizer.flags = {"--vocab-file=b"};
  EXPECT_TRUE(concatenate(parts).tokenizer.flags.empty());
}

TEST(Concatenate, RefusesTasksThatDoNotFollowEachOther) {
  auto parts = tasks(0, 2, 3);
  parts_refused({}, "there are no parts");
  parts_refused(
      {parts[0], parts[2]},
      "part 2 begins with task 2 of 3, counted from 0, expected task 1: tasks are missing");
  parts_refused(
      {parts[0], parts[0]},
      "part 2 begins with task 0 of 3, counted from 0, expected task 1: a task occurs twice");
  parts_refused({parts[1], parts[0]},
                "expected task 2: a task occurs twice, or the parts are out of");
  parts_refused({parts[0], read_golden("twice_1_of_2")},
                "part 2 comes from a run of 2 tasks, but the earlier parts come from a run of 3");
  parts_refused({parts[0], read_golden("twice")},
                "part 2 is a whole dataset, but the earlier parts are outputs of tasks");
  parts_refused({read_golden("twice"), parts[0]},
                "part 2 is the output of a task, but the earlier parts are whole datasets");
}

TEST(Concatenate, RefusesExtentsThatDoNotMeet) {
  auto parts = tasks(0, 2, 3);
  parts[1].inputs[0].begin = 87;
  parts_refused(
      parts,
      "part 2 begins at byte 87 of preprocess_lines.jsonl, but the earlier parts end at byte "
      "86 of preprocess_lines.jsonl");
  parts = tasks(0, 2, 3);
  parts[1].inputs[0].path = "other\n";
  parts_refused(parts,
                "of other\\x0a, but the earlier parts end at byte 86 of preprocess_lines.jsonl");
  parts = tasks(0, 2, 3);
  parts[0].inputs.clear();
  parts_refused(
      parts, "part 2 begins at byte 86 of preprocess_lines.jsonl, but there is no earlier input");
}

TEST(Concatenate, JoinsTheRowsOfAnInput) {
  auto parts = tasks(0, 2, 3);
  parts.resize(2);
  for (dataset_meta& part : parts) part.inputs.front().has_rows = true;
  const std::int64_t rows = parts[0].inputs[0].lines;
  parts[1].inputs[0].begin = static_cast<std::uint64_t>(rows);
  parts[1].src_version = 2;
  const dataset_meta whole = concatenate(parts);
  EXPECT_EQ(whole.inputs.front().lines, rows + parts[1].inputs[0].lines);
  EXPECT_EQ(whole.src_version, 2);
  parts[1].inputs[0].begin += 1;
  parts_refused(parts, "part 2 begins at row " + std::to_string(rows + 1) +
                           " of preprocess_lines.jsonl, but the earlier parts end at row " +
                           std::to_string(rows));
  parts[1].inputs[0].begin -= 1;
  parts[0].inputs[0].has_rows = false;
  parts_refused(parts, "but the earlier parts end at byte 86 of preprocess_lines.jsonl");
}

// Parts of one input are joined even if one of them has an inexact name. In the .meta of an older
// program, U+FFFD replaces each byte of a name that is not UTF-8.
TEST(Concatenate, JoinsAnInputWhoseNameAnOlderPartHasInexactly) {
  const std::string exact = "caf\xE9 \xFF.jsonl";
  const std::string replaced = "caf\uFFFD \uFFFD.jsonl";
  for (const bool older_first : {true, false}) {
    SCOPED_TRACE(older_first);
    auto parts = tasks(0, 2, 3);
    auto wanted = concatenate(parts);
    parts[0].inputs[0].path = older_first ? replaced : exact;
    parts[1].inputs[0].path = older_first ? exact : replaced;
    wanted.inputs[0].path = exact;
    EXPECT_EQ(concatenate(parts), wanted);
  }
  auto parts = tasks(0, 2, 3);
  parts[0].inputs[0].path = replaced;
  parts[1].inputs[0].path = "caf\xE9 x.jsonl";
  parts_refused(parts, "but the earlier parts end at byte 86 of caf");
}

/// Returns tasks whose shares meet without gaps.
std::vector<dataset_meta> tasks_with_shares() {
  auto parts = tasks(0, 2, 3);
  parts[0].tasks->share = share_bounds{{0, 0}, {0, 86}, 7};
  parts[1].tasks->share = share_bounds{{0, 86}, {1, 0}, 7};
  parts[2].tasks->share = share_bounds{{1, 0}, {2, 0}, 7};
  return parts;
}

TEST(Concatenate, PutsSharesThatMeetTogether) {
  auto parts = tasks_with_shares();
  const dataset_meta half = concatenate(std::span(parts).first(2));
  EXPECT_EQ(half.tasks->share, (share_bounds{{0, 0}, {1, 0}, 7}));
  EXPECT_EQ(concatenate(std::vector{half, parts[2]}).tasks, std::nullopt);
  parts[1].tasks->share.reset();  // this task recorded no share
  EXPECT_EQ(concatenate(std::span(parts).first(2)).tasks->share, std::nullopt);
  EXPECT_EQ(concatenate(parts).tasks, std::nullopt);
}

// A file that was left out or read twice may be hard to detect. If shares begin at the start of a
// file, only the index and the names of the inputs reveal the mistake.
TEST(Concatenate, RefusesSharesOfOtherInputs) {
  auto parts = tasks_with_shares();
  parts[2].tasks->share->begin = {2, 0};
  parts_refused(
      parts,
      "part 3 begins at byte 0 of input 2, counted from 0, but the earlier parts end at byte 0 "
      "of input 1: its task had other inputs than the earlier tasks");
  parts = tasks_with_shares();
  parts[1].tasks->share->names_crc32c = 8;
  parts_refused(parts, "part 2 has inputs with other names: its task had other inputs than");
}

// Whole datasets may differ in how they treat bad records. Parts of one run may not.
TEST(Concatenate, MixesWhatBecameOfBadRecordsInWholesAlone) {
  const dataset_meta one = read_golden("preprocess_lines");
  dataset_meta other = one;
  other.on_bad_record = "fail";
  const std::vector<dataset_meta> wholes = {one, other, other};
  EXPECT_EQ(concatenate(wholes).on_bad_record, "mixed");
  auto parts = tasks(0, 1, 2);
  parts[1].on_bad_record = "fail";
  parts_refused(parts, "--on-bad-record of part 2 is fail, but skip");
}

TEST(Concatenate, RefusesPartsOfOtherFlags) {
  const dataset_meta one = read_golden("preprocess_lines");
  const auto differs = [&](auto change, const std::string& why) {
    dataset_meta other = one;
    change(other);
    parts_refused({one, one, other}, why);
  };
  differs([](auto& m) { m.level = "sentence"; },
          "the level of part 3 is sentence, but document in");
  differs([](auto& m) { m.key = "body"; },
          "the key of part 3 is body, but text in the earlier parts");
  differs([](auto& m) { m.path = "a.b"; }, "the path of the key of part 3 is a.b, but text");
  differs([](auto& m) { m.type = dtype::int32; }, "the dtype of part 3 is int32, but uint16");
  differs([](auto& m) { m.append_eod = true; }, "--append-eod of part 3 is true, but false");
  differs([](auto& m) { m.tokenizer.type = "x"; }, "the tokenizer type of part 3 is x, but Byte");
  differs([](auto& m) { m.tokenizer.fingerprint = "0"; },
          "the tokenizer's fingerprint of part 3 is");
  differs([](auto& m) { m.tokenizer.vocab_size = 1; },
          "the vocabulary size of part 3 is 1, but 51");
  differs([](auto& m) { m.tokenizer.eod.reset(); }, "id (-1: none) of part 3 is -1, but 0");
  differs([](auto& m) { m.options[0].second = "ids"; },
          R"(the options of part 3 are "special_tokens=ids", but "special_tokens=as-text" in)");
  differs([](auto& m) { m.options.clear(); }, R"(the options of part 3 are "", but)");
  differs([](auto& m) { m.counts.bad_records.pop_back(); },
          "part 3 counts other kinds of bad reco");
}

TEST(Concatenate, RefusesSumsThatWouldWrap) {
  const dataset_meta one = read_golden("preprocess_lines");
  dataset_meta other = one;
  other.counts.lone_surrogates = most;
  EXPECT_EQ(concatenate(std::vector{one, other}).counts.lone_surrogates, most);
  parts_refused({other, one, other}, "the sum of the parts' lone_surrogates exceeds 2^63 - 1");
  other = one;
  other.bin_bytes = static_cast<std::uint64_t>(most) - 563;
  parts_refused({one, other}, "the sum of the parts' bytes exceeds 2^63 - 1");
}

/// Shifts the places of a part and appends them to `places`.
void append_shifted(const std::string& name, const part_shift& shift,
                    std::vector<source_place>& places) {
  const auto file = test::read_bytes(test::golden("sidecars/" + name + ".src"));
  const src_view view = parse_src(file);
  src_cursor cursor(view);
  for (auto group = cursor.next(); !group.empty(); group = cursor.next()) {
    for (const source_place& place : group) places.push_back(shift.apply(place));
  }
}

TEST(PartShifts, MakeOfAllPlacesThoseOfOneProcess) {
  for (const int of : {2, 3, 6}) {
    const auto parts = tasks(0, of - 1, of);
    const auto shifts = part_shifts(parts);
    ASSERT_EQ(shifts.size(), parts.size());
    std::vector<source_place> places;
    for (int task = 0; task < of; ++task) {
      append_shifted(task_name(task, of), shifts[static_cast<std::size_t>(task)], places);
    }
    std::vector<src_input> inputs;
    for (const input_extent& input : concatenate(parts).inputs) inputs.push_back({input.path});
    EXPECT_EQ(test::encode_src(places, inputs),
              test::read_bytes(test::golden("sidecars/twice.src")))
        << of << " tasks";
  }
}

TEST(PartShifts, RefuseALineThatWouldWrap) {
  const part_shift shift{1, 2};
  EXPECT_EQ(shift.apply({0, most - 2, 3, 4}), (source_place{1, most, 3, 4}));
  EXPECT_EQ(shift.apply({1, most, 3, 4}), (source_place{2, most, 3, 4}));
  EXPECT_THROW((void)shift.apply({0, most - 1, 3, 4}), config_error);
}

}  // namespace
}  // namespace millrace::formats
