// SPDX-License-Identifier: Apache-2.0
//
// Times one tokenizer on the texts of a JSON-lines file that is held in memory. Prints one line of
// JSON.
//
//   encode_corpus FILE PASSES|halves THREADS <the tokenizer flags of preprocess_data>
//
// In the first pass, the encoders have not seen the texts yet. Later passes encode the same texts
// again. With `halves`, there are two passes: the documents of the first half of the text, then
// those of the second half by the same encoders. Several threads take turns at parts of the text,
// so that all are busy until the end, each on a core of its own: a pass can be shorter than the
// time until the kernel moves one of two threads away from the same core. "bytes" and "md5" are of
// the last pass; "md5" is the digest of its ids, as little-endian uint32. The program touches all
// memory before timing starts: on a virtual machine, the first touch of a page takes longer than
// encoding the text in it. "load_s" is the time to make the tokenizer, "encoders_s" that to make
// the encoders. "round_trip_ns", with several threads, is the time in which the first two cores
// hand a cache line to each other and back: it tells what sharing memory costs them.
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <simdjson.h>
#include <boost/program_options.hpp>

#include <millrace/formats/detail/md5.hpp>
#include <millrace/tokenizer/tokenizer.hpp>
#include <millrace/tokenizer/tokenizer_flags.hpp>

namespace {

namespace tokenizer = millrace::tokenizer;
using seconds = std::chrono::duration<double>;

double now() {
  return seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct corpus {
  std::string text;
  std::vector<std::size_t> ends;  // end of each document

  std::string_view document(std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends[i - 1];
    return std::string_view(text).substr(begin, ends[i] - begin);
  }
};

corpus read_corpus(const char* path) {
  corpus all;
  std::ifstream in(path);
  if (!in) throw std::runtime_error(std::string(path) + ": cannot be read");
  simdjson::dom::parser parser;
  for (std::string line; std::getline(in, line);) {
    all.text += std::string_view(parser.parse(line)["text"]);
    all.ends.push_back(all.text.size());
  }
  return all;
}

struct documents {
  std::size_t begin = 0;
  std::size_t end = 0;
};

std::size_t bytes_before(const corpus& all, std::size_t document) {
  return document == 0 ? 0 : all.ends[document - 1];
}

std::size_t bytes_of(const corpus& all, documents some) {
  return bytes_before(all, some.end) - bytes_before(all, some.begin);
}

// Cuts documents into `parts` consecutive parts of about the same number of bytes.
std::vector<documents> cut(const corpus& all, documents some, std::size_t parts) {
  std::vector<documents> cuts;
  std::size_t at = some.begin;
  for (std::size_t i = 0; i < parts; ++i) {
    const std::size_t begin = at;
    const std::size_t target =
        bytes_before(all, some.begin) + bytes_of(all, some) * (i + 1) / parts;
    while (at < some.end && (all.ends[at] <= target || i + 1 == parts)) ++at;
    cuts.push_back({begin, at});
  }
  return cuts;
}

// What each pass encodes.
std::vector<documents> passes_of(const corpus& all, const std::string& passes) {
  const documents whole{0, all.ends.size()};
  if (passes == "halves") return cut(all, whole, 2);
  const int count = std::atoi(passes.c_str());
  if (count < 1) throw std::runtime_error("'" + passes + "': expected passes or 'halves'");
  return std::vector<documents>(static_cast<std::size_t>(count), whole);
}

// One thread's encoder and the ids of the documents that it encodes in this pass. It begins at a
// pair of cache lines, because `ids` is written after each batch of words: two threads that write
// to one line wait for each other.
struct alignas(128) share {
  tokenizer::id_buffer ids;
  std::unique_ptr<tokenizer::encoder> encoder;
};

// Where the ids of a part of the text are, after a pass.
struct part_ids {
  const share* holder = nullptr;
  std::size_t begin = 0;
  std::size_t end = 0;

  std::span<const std::int32_t> ids() const {
    return holder->ids.ids().subspan(begin, end - begin);
  }
};

void encode_part(const corpus& all, documents part, share& mine) {
  for (std::size_t i = part.begin; i < part.end; ++i) {
    if (const auto fault = mine.encoder->encode(all.document(i), mine.ids)) {
      throw std::runtime_error(fault->what);
    }
  }
}

std::vector<share> make_shares(std::size_t threads, std::size_t bytes,
                               const tokenizer::tokenizer& tokenizer) {
  std::vector<share> shares(threads);
  for (share& each : shares) {
    each.encoder = tokenizer.make_encoder();
    const std::size_t room = bytes / threads * 5 / 4 + 65536;
    std::fill_n(each.ids.room(room), room, 1);
  }
  return shares;
}

struct pass_time {
  double wall;
  double cpu;  // CPU time of all threads; on a busy machine, more exact than `wall`
};

double cpu_now() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// The cores that the process may use.
std::vector<std::size_t> usable_cores() {
  cpu_set_t set;
  std::vector<std::size_t> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

void move_this_thread_to(std::size_t core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

// The time in which two cores hand a cache line to each other and back, in nanoseconds.
double round_trip_ns(std::size_t core, std::size_t other) {
  constexpr int trips = 20'000;
  std::atomic<int> turn = 0;
  std::jthread there([&] {
    move_this_thread_to(other);
    for (int trip = 0; trip < trips; ++trip) {
      while (turn.load(std::memory_order_acquire) != 2 * trip + 1) {
      }
      turn.store(2 * trip + 2, std::memory_order_release);
    }
  });
  double taken = 0;
  std::jthread here([&] {
    move_this_thread_to(core);
    double start = 0;
    for (int trip = 0; trip < trips; ++trip) {
      turn.store(2 * trip + 1, std::memory_order_release);
      while (turn.load(std::memory_order_acquire) != 2 * trip + 2) {
      }
      if (trip == 0) start = now();  // both threads run
    }
    taken = now() - start;
  });
  here.join();
  return taken / (trips - 1) * 1e9;
}

// Encodes the documents. Returns the time, and in `found` where the ids of each part are.
pass_time timed_pass(const corpus& all, documents some, std::vector<share>& shares,
                     std::vector<part_ids>& found) {
  const auto parts = cut(all, some, shares.size() == 1 ? 1 : 32 * shares.size());
  found.assign(parts.size(), {});
  std::atomic<std::size_t> next = 0;
  const auto encode = [&](share& mine) {
    mine.ids.clear();
    for (std::size_t i = next++; i < parts.size(); i = next++) {
      const std::size_t begin = mine.ids.size();
      encode_part(all, parts[i], mine);
      found[i] = {&mine, begin, mine.ids.size()};
    }
  };
  const double start = now();
  const double cpu_start = cpu_now();
  if (shares.size() == 1) {
    encode(shares[0]);
  } else {
    const std::vector<std::size_t> cores = usable_cores();
    std::vector<std::jthread> threads;
    threads.reserve(shares.size());
    for (std::size_t i = 0; i < shares.size(); ++i) {
      threads.emplace_back([&, i] {
        if (!cores.empty()) move_this_thread_to(cores[i % cores.size()]);
        encode(shares[i]);
      });
    }
  }
  return {now() - start, cpu_now() - cpu_start};
}

int run(int argc, char** argv) {
  namespace po = boost::program_options;
  po::variables_map given;
  po::store(po::parse_command_line(argc - 3, argv + 3, tokenizer::tokenizer_flags()), given);
  const corpus all = read_corpus(argv[1]);
  const double load_start = now();
  const auto made = tokenizer::make_tokenizer(tokenizer::tokenizer_options_of(given).value());
  const double load = now() - load_start;
  const auto passes = passes_of(all, argv[2]);
  const double encoders_start = now();
  auto shares = make_shares(static_cast<std::size_t>(std::atoi(argv[3])),
                            bytes_of(all, passes.back()), *made);
  const double encoders = now() - encoders_start;

  std::string times;
  std::string rates;
  std::string cpu_rates;
  const auto add = [](std::string& list, double figure) {
    if (!list.empty()) list += ", ";
    list += std::to_string(figure);
  };
  std::vector<part_ids> found;
  for (const documents& some : passes) {
    const pass_time taken = timed_pass(all, some, shares, found);
    const double megabytes = static_cast<double>(bytes_of(all, some)) / 1e6;
    add(times, taken.wall);
    add(rates, megabytes / taken.wall);
    add(cpu_rates, megabytes / taken.cpu);
  }
  millrace::formats::md5 md5;
  std::size_t tokens = 0;
  for (const part_ids& part : found) {
    tokens += part.ids().size();
    md5.update(std::as_bytes(part.ids()));
  }
  std::cout << "{\"bytes\": " << bytes_of(all, passes.back()) << ", \"tokens\": " << tokens
            << ", \"md5\": \"" << md5.hex() << "\", \"load_s\": " << load
            << ", \"encoders_s\": " << encoders;
  const std::vector<std::size_t> cores = usable_cores();
  if (shares.size() > 1 && cores.size() > 1) {
    std::cout << ", \"round_trip_ns\": " << round_trip_ns(cores[0], cores[1]);
  }
  std::cout << ", \"seconds\": [" << times << "], \"MB_per_s\": [" << rates
            << "], \"MB_per_cpu_s\": [" << cpu_rates << "]}" << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::cerr << "usage: encode_corpus FILE PASSES|halves THREADS <tokenizer flags>\n";
    return 2;
  }
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << "encode_corpus: " << e.what() << '\n';
    return 1;
  }
}
