// SPDX-License-Identifier: Apache-2.0
#include "report/dry_run.hpp"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <millrace/error.hpp>

#include "input/byte_block.hpp"
#include "input/byte_source.hpp"
#include "record/record_parser.hpp"
#include "report/sample_reader.hpp"

namespace millrace::preprocess {
namespace {

constexpr std::uint64_t most_decompressed = 4;  // limit of take_all(), in units of `whole_bytes`
constexpr std::size_t most_places = 256;
constexpr std::size_t compressed_files = 64;
constexpr std::size_t bytes_per_place = std::size_t{128} << 10;
constexpr std::uint64_t all_compressed_text = std::uint64_t{24} << 20;
constexpr std::uint64_t least_compressed_text = std::uint64_t{1} << 20;
constexpr double idx_header_bytes = 34;

double cpu_seconds(::clockid_t whose) {
  ::timespec now{};
  ::clock_gettime(whose, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double thread_seconds() {
  return cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
}

double resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kibibytes = 0;
    if (word == "VmRSS:" && status >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

struct sampled_piece {
  double bytes = 0;
  sampled_counts found = {};
  std::pair<std::size_t, std::uint64_t> place = {};  // file and byte offset, for sorting

  void add(const sampled_piece& other) {
    bytes += other.bytes;
    found.counts += other.found.counts;
    found.tokens += other.found.tokens;
    auto& keys = found.tokens_of_keys;
    keys.resize(std::max(keys.size(), other.found.tokens_of_keys.size()));
    for (std::size_t key = 0; key < other.found.tokens_of_keys.size(); ++key) {
      keys[key] += other.found.tokens_of_keys[key];
    }
    found.sequences += other.found.sequences;
  }
};

// A part of the input and the pieces sampled from this part. `bytes` is the decompressed size of
// the part.
struct stratum {
  std::vector<sampled_piece> pieces;
  estimate bytes;
};

template <class Amount>
estimate scaled(const stratum& part, Amount amount_of) {
  std::vector<sampled_amount> amounts;
  for (const sampled_piece& each : part.pieces) {
    amounts.push_back({each.bytes, static_cast<double>(amount_of(each.found))});
  }
  return scaled_up(amounts, part.bytes);
}

class input_sampler {
 public:
  input_sampler(const dry_run_options& options, const sample_encoder& encode)
      : options_(options), encode_(encode), resident_before_(resident_bytes()) {}

  dry_run_report run() {
    for (const input_file& input : options_.inputs) expect_regular(input);
    if (!take_all()) {
      for (const input_file& input : options_.inputs) {
        from_start_.push_back(input.compressed_with != compression::none || is_array(input));
      }
      take_plain();
      take_compressed();
    }
    return report();
  }

 private:
  static void expect_regular(const input_file& input) {
    if (input.regular) return;
    throw config_error(
        fmt::format("--dry-run: {} is not a regular file; a dry run would consume its data, so the "
                    "real run could not read it",
                    display_path(input).string()));
  }

  using clock = std::chrono::steady_clock;
  static double seconds_since(clock::time_point then) {
    return std::chrono::duration<double>(clock::now() - then).count();
  }
  bool in_time() const { return seconds_since(begun_) < options_.most_seconds; }

  sampled_piece take(std::string_view lines) {
    sampled_piece out{.bytes = static_cast<double>(lines.size())};
    if (lines.empty()) return out;
    const double before = thread_seconds();
    out.found = encode_(lines);
    timings_.push_back({out.bytes, thread_seconds() - before});
    met_ += out.found.counts;
    return out;
  }

  // Encodes small inputs completely. That gives exact counts and is faster than spread samples.
  // Returns false if the inputs are too large or take too long.
  bool take_all() {
    std::uint64_t bytes = 0;
    for (const input_file& input : options_.inputs) bytes += input.size_bytes;
    if (bytes > options_.whole_bytes) return false;
    stratum all;
    std::uint64_t text = 0;
    for (const input_file& input : options_.inputs) {
      const std::uint64_t room = most_decompressed * options_.whole_bytes - text;
      const auto encode = [&](std::string_view lines) {
        if (in_time()) all.pieces.push_back(take(lines));
      };
      const compressed_sample read = read_start(input, bytes_per_place, room, encode);
      text += read.text_bytes;
      if (!read.whole || read.text_bytes > room || !in_time()) {
        met_ = {};
        begun_ = clock::now();
        return false;
      }
    }
    all.bytes = {static_cast<double>(text), 0};
    strata_.push_back(std::move(all));
    exact_ = true;
    return true;
  }

  std::vector<std::uint64_t> sizes(bool from_start) const {
    std::vector<std::uint64_t> out;
    for (std::size_t i = 0; i < from_start_.size(); ++i) {
      out.push_back(from_start_[i] == from_start ? options_.inputs[i].size_bytes : 0);
    }
    return out;
  }

  void take_plain() {
    const std::vector<std::uint64_t> plain = sizes(false);
    stratum part;
    for (const std::uint64_t size : plain) part.bytes.value += static_cast<double>(size);
    sample_reader reader;
    bool too_long = false;
    for (const sample_place& place : sample_places(plain, most_places, bytes_per_place)) {
      if (!in_time() && part.pieces.size() >= 2) break;
      sampled_piece whole;
      whole.place = {place.front().file, place.front().begin};
      for (const sample_range& range : place) {
        too_long |= !reader.read(options_.inputs[range.file], range,
                                 [&](std::string_view lines) { whole.add(take(lines)); });
      }
      part.pieces.push_back(whole);
    }
    std::ranges::sort(part.pieces, {}, &sampled_piece::place);
    if (too_long) notes_.emplace_back("The sample excludes lines longer than 64 MiB.");
    if (!part.pieces.empty()) strata_.push_back(std::move(part));
  }

  void take_compressed() {
    const std::vector<std::uint64_t> compressed = sizes(true);
    const auto files = static_cast<std::size_t>(
        std::ranges::count_if(compressed, [](std::uint64_t size) { return size > 0; }));
    if (files == 0) return;
    notes_.emplace_back(
        "Compressed files, Parquet files and JSON arrays were sampled only at their start; later "
        "parts may "
        "differ.");
    if (files <= compressed_files) {
      for (std::size_t file = 0; file < compressed.size(); ++file) {
        if (compressed[file] > 0) take_compressed_file(file, files);
      }
    } else {
      take_some_compressed(compressed);
    }
  }

  // Samples one compressed file as a stratum of its own. Used if there are few compressed files.
  void take_compressed_file(std::size_t file, std::size_t files) {
    stratum part;
    const compressed_sample read =
        read_compressed(file, std::max(least_compressed_text, all_compressed_text / files),
                        options_.most_seconds / static_cast<double>(files), part.pieces);
    const double text = static_cast<double>(read.text_bytes);
    const double all =
        static_cast<double>(options_.inputs[file].size_bytes) * read.compression_ratio;
    part.bytes = {read.whole ? text : std::max(text, all), 0};
    if (!part.pieces.empty()) strata_.push_back(std::move(part));
  }

  // Samples some of the compressed files, as one stratum. Used if there are many such files. Each
  // sampled file is one piece. A file that is selected twice counts twice.
  void take_some_compressed(const std::vector<std::uint64_t>& compressed) {
    stratum part;
    double on_disk = 0;
    for (const std::uint64_t size : compressed) on_disk += static_cast<double>(size);
    std::vector<double> ratios;
    std::map<std::size_t, std::pair<sampled_piece, double>> taken;
    for (const std::size_t file : sample_files(compressed, compressed_files)) {
      if (!taken.contains(file)) {
        if (!in_time() && ratios.size() >= 2) break;
        std::vector<sampled_piece> pieces;
        const compressed_sample read = read_compressed(
            file, least_compressed_text, options_.most_seconds / compressed_files, pieces);
        sampled_piece sum;
        sum.place.first = file;
        for (const sampled_piece& each : pieces) sum.add(each);
        taken[file] = {sum, read.compression_ratio};
      }
      part.pieces.push_back(taken[file].first);
      ratios.push_back(taken[file].second);
    }
    std::ranges::sort(part.pieces, {}, &sampled_piece::place);
    const estimate ratio = mean_of(ratios);
    part.bytes = {ratio.value * on_disk, ratio.error * on_disk};
    if (!part.pieces.empty()) strata_.push_back(std::move(part));
  }

  // Reads and encodes at least one piece of a file, then more pieces for at most `share_seconds`.
  compressed_sample read_compressed(std::size_t file, std::uint64_t text_bytes,
                                    double share_seconds, std::vector<sampled_piece>& pieces) {
    const auto began = clock::now();
    // CPU time of the whole process, because decompression may use a separate thread.
    const double before = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
    double encoding = 0;
    const auto encode = [&](std::string_view lines) {
      if (!pieces.empty() && seconds_since(began) > share_seconds) return;
      const double start = thread_seconds();
      pieces.push_back(take(lines));
      encoding += thread_seconds() - start;
    };
    const compressed_sample read =
        read_start(options_.inputs[file], bytes_per_place, text_bytes, encode);
    decompress_.bytes += static_cast<double>(read.text_bytes);
    decompress_.amount += cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - before - encoding;
    return read;
  }

  // Returns the time in which one worker encodes one byte. Uses only the second half of the
  // timings, because the first half includes warming the caches.
  double encode_seconds_per_byte() const {
    sampled_amount sum;
    for (std::size_t i = timings_.size() / 2; i < timings_.size(); ++i) {
      sum.bytes += timings_[i].bytes;
      sum.amount += timings_[i].amount;
    }
    return sum.bytes > 0 ? sum.amount / sum.bytes : 0;
  }

  dry_run_report report() const {
    dry_run_report out;
    out.exact = exact_;
    out.sampled = met_;
    out.notes = notes_;
    out.input_files = options_.inputs.size();
    for (const input_file& input : options_.inputs) out.read_bytes += input.size_bytes;
    for (const stratum& part : strata_) {
      out.input_bytes += part.bytes;
      out.documents += scaled(part, [](const sampled_counts& c) { return c.counts.documents; });
      out.tokens += scaled(part, [](const sampled_counts& c) { return c.tokens; });
      out.sequences += scaled(part, [](const sampled_counts& c) { return c.sequences; });
      out.sampled_places += part.pieces.size();
      for (const sampled_piece& each : part.pieces) out.sampled_bytes += each.bytes;
    }
    for (estimate* each : {&out.documents, &out.tokens, &out.sequences}) {
      *each = {each->value * options_.record_rate, each->error * options_.record_rate};
    }
    if (options_.record_rate < 1) {
      out.exact = false;
      out.notes.emplace_back(
          "Documents and tokens are those of all records times --sample-rate. Their errors do not "
          "include chance.");
    }
    if (options_.permutes) {
      out.exact = false;
      out.notes.emplace_back(
          "The run permutes other documents than this estimate (--fim-rate), so the number of "
          "tokens differs a little.");
    }
    const auto keys = static_cast<double>(options_.keys);
    double part = 1;  // of all records, those before the end at `most_tokens`
    const double largest = largest_key_tokens() * options_.record_rate;
    const double most = options_.most_tokens ? static_cast<double>(*options_.most_tokens) : largest;
    if (largest > most) {
      part = most / largest;
      const double others = out.tokens.value - largest;
      for (estimate* each : {&out.documents, &out.tokens, &out.sequences}) {
        *each = {each->value * part, each->error * part};
      }
      out.tokens.value = most + others * part;
      if (options_.keys == 1) out.tokens.error = 0;
      out.exact = false;
      out.notes.push_back(fmt::format(
          "The run ends at --max-tokens, after about {:.3g} % of the input.", part * 100));
    }
    out.bin_bytes = out.tokens.value * static_cast<double>(options_.token_bytes);
    out.idx_bytes =
        keys * (idx_header_bytes + 8 * (out.documents.value + 1)) + 12 * out.sequences.value;
    out.sidecar_bytes = options_.sidecar_bytes_per_document * keys * out.documents.value +
                        options_.sidecar_bytes_per_token * out.tokens.value;
    add_costs(out);
    out.seconds *= part;
    return out;
  }

  // Returns the number of tokens of the key that has the most, in all records.
  double largest_key_tokens() const {
    double largest = 0;
    for (std::size_t key = 0; key < options_.keys; ++key) {
      estimate tokens;
      for (const stratum& part : strata_) {
        tokens += scaled(part, [&](const sampled_counts& c) {
          return key < c.tokens_of_keys.size() ? c.tokens_of_keys[key] : 0;
        });
      }
      largest = std::max(largest, tokens.value);
    }
    return largest;
  }

  void add_costs(dry_run_report& out) const {
    out.workers = options_.workers;
    out.sampling_seconds = seconds_since(start_);
    const double encode = encode_seconds_per_byte();
    const double decompress = decompress_.bytes > 0 ? decompress_.amount / decompress_.bytes : 0;
    out.encode_rate = encode > 0 ? 1 / (encode * options_.record_rate) : 0;
    // The workers share all the work equally. But the total cannot take less time than
    // decompression, which is serial.
    out.seconds =
        out.input_bytes.value *
        std::max(decompress, (decompress + encode * options_.record_rate) / options_.workers);
    const double input = out.input_bytes.value;
    const double ids_per_byte = input > 0 ? out.bin_bytes / input : 0;
    const double encoder = std::max(0.0, resident_bytes() - resident_before_);
    std::uint64_t window = 0;  // of all files, the largest window: only one file is read at a time
    for (const input_file& each : options_.inputs) window = std::max(window, each.window_bytes);
    out.memory_bytes = resident_before_ + static_cast<double>(window) + encoder * options_.workers +
                       static_cast<double>(options_.blocks_in_flight) *
                           static_cast<double>(options_.block_bytes) * (1 + ids_per_byte);
  }

  const dry_run_options& options_;
  const sample_encoder& encode_;
  const double resident_before_;
  const clock::time_point start_ = clock::now();
  clock::time_point begun_ = start_;  // start of the current sampling method
  std::vector<bool> from_start_;      // per file: whether it must be read from its start
  std::vector<stratum> strata_;
  std::vector<sampled_amount> timings_;  // bytes and seconds of each call of the encoder
  sampled_amount decompress_;            // bytes and seconds of reading compressed files
  record_counts met_;
  bool exact_ = false;
  std::vector<std::string> notes_;
};

}  // namespace

dry_run_report dry_run(const dry_run_options& options, const sample_encoder& encode) {
  return input_sampler(options, encode).run();
}

sample_encoder make_sample_encoder(const tokenizer::tokenizer& tokenizer, encoder_options options) {
  struct state {
    std::optional<block_encoder> encoder;  // created on first use, to measure its memory
    byte_block block;
    encoded_block encoded;
  };
  const auto token_bytes = static_cast<std::int64_t>(formats::size_bytes(options.dtype));
  options.on_bad_record = bad_record_policy::skip;
  options.sampler = nullptr;
  // The state is shared, because a std::function must be copyable.
  return [parts = std::make_shared<state>(), &tokenizer, options = std::move(options),
          token_bytes](std::string_view lines) {
    if (!parts->encoder) parts->encoder.emplace(tokenizer, options);
    parts->block.buffer.reserve(lines.size() + record_parser::padding_bytes, 0);
    std::memcpy(parts->block.buffer.data(), lines.data(), lines.size());
    parts->block.text_bytes = lines.size();
    parts->encoder->encode(parts->block, parts->encoded);
    sampled_counts out;
    out.counts = parts->encoded.counts;
    for (const encoded_column& column : parts->encoded.columns) {
      out.tokens_of_keys.push_back(static_cast<std::int64_t>(column.ids_bytes) / token_bytes);
      out.tokens += out.tokens_of_keys.back();
      out.sequences += static_cast<std::int64_t>(column.lengths.size());
    }
    return out;
  };
}

}  // namespace millrace::preprocess
