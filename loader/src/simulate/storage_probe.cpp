// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/simulate/storage_probe.hpp>

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <millrace/dataset/instant_run.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/crc32c.hpp>
#include <millrace/formats/dtype.hpp>
#include <millrace/formats/mmidx.hpp>
#include <millrace/io/detail/residency.hpp>
#include <millrace/io/detail/temporary_folder.hpp>
#include <millrace/io/detail/unique_fd.hpp>
#include <millrace/io/file_ops.hpp>
#include <millrace/loader/batch.hpp>
#include <millrace/loader/batch_loader.hpp>
#include <millrace/loader/detail/io/file_system.hpp>
#include <millrace/loader/detail/io/reader_choice.hpp>
#include <millrace/loader/detail/io/uring_probe.hpp>
#include <millrace/loader/detail/telemetry/report_text.hpp>
#include <millrace/loader/detail/telemetry/stage.hpp>
#include <millrace/loader/loader_report.hpp>

namespace millrace::loader {

namespace detail {

inline void stop_if_asked(const probe_options& options) {
  if (options.should_stop && options.should_stop()) throw error("the probe was stopped");
}

using probe_clock = std::chrono::steady_clock;

inline double seconds_since(probe_clock::time_point begin) {
  return std::chrono::duration<double>(probe_clock::now() - begin).count();
}

/// Writes the probe's dataset, and drops it from the page cache before each measurement.
class probe_data {
 public:
  probe_data(const std::filesystem::path& prefix, const probe_options& options, std::uint64_t most)
      : bin_(prefix.string() + ".bin"),
        idx_(prefix.string() + ".idx"),
        fd_(::open(bin_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) {
    if (!fd_) throw io_error(bin_, "open", errno);
    write_tokens(options, most);
    write_index(options);
  }

  std::uint64_t bytes() const noexcept { return bytes_; }
  double write_bytes_per_second() const noexcept { return rate_; }

  /// Returns whether the data has left the page cache.
  bool drop() const {
    if (::fdatasync(fd_.get()) != 0) throw io_error(bin_, "fdatasync", errno);
    (void)::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED);
    const auto share = io::resident_share(fd_.get(), 0, bytes_);
    return !share || *share < 0.05;
  }

  /// Rate of reading a part of the file from start to end, in bytes per second.
  double sequential_rate(double time) const {
    std::vector<std::byte> part(std::size_t{1} << 20);
    const auto begin = probe_clock::now();
    std::uint64_t at = 0;
    while (at + part.size() <= bytes_ && seconds_since(begin) < time) {
      at += io::pread_some(fd_, part, at, bin_);
    }
    return static_cast<double>(at) / std::max(1e-9, seconds_since(begin));
  }

 private:
  // Random bytes, because some file systems compress. Every value of a type with 16 bits is a valid
  // token; of other types, the loader accepts any.
  void write_tokens(const probe_options& options, std::uint64_t most) {
    const auto wide = static_cast<std::uint64_t>(formats::size_bytes(options.type));
    const double share_of_time = 0.25;
    std::vector<std::uint64_t> part(std::size_t{1} << 17);  // 1 MiB
    std::mt19937_64 random(1);
    for (std::uint64_t& word : part) word = random() & 0x7FFF'FFFF'7FFF'FFFF;
    const auto begin = probe_clock::now();
    const std::uint64_t least = std::min(most, least_bytes(options));
    while (bytes_ < most &&
           (bytes_ < least || seconds_since(begin) < share_of_time * options.time.count())) {
      stop_if_asked(options);
      // Other bytes each time, at little cost, so that no part equals another.
      for (std::size_t i = 0; i < part.size(); i += 64) part[i] = random() & 0x7FFF'FFFF'7FFF'FFFF;
      const auto bytes = std::as_bytes(std::span(part));
      const std::uint64_t now = std::min<std::uint64_t>(bytes.size(), most - bytes_) / wide * wide;
      if (now == 0) break;
      io::pwrite_all(fd_, bytes.first(now), bytes_, bin_);
      bytes_ += now;
      // Otherwise, gigabytes could wait in memory, and the sync below would take minutes.
      if (bytes_ % (std::uint64_t{64} << 20) == 0 && ::fdatasync(fd_.get()) != 0) {
        throw io_error(bin_, "fdatasync", errno);
      }
    }
    if (::fdatasync(fd_.get()) != 0) throw io_error(bin_, "fdatasync", errno);
    rate_ = static_cast<double>(bytes_) / std::max(1e-9, seconds_since(begin));
  }

  static std::uint64_t least_bytes(const probe_options& options) {
    return 64 * static_cast<std::uint64_t>(options.loader.batch_size * options.loaders) *
           static_cast<std::uint64_t>(options.seq_len + 1) *
           static_cast<std::uint64_t>(formats::size_bytes(options.type));
  }

  void write_index(const probe_options& options) const {
    const auto tokens = static_cast<std::int64_t>(
        bytes_ / static_cast<std::uint64_t>(formats::size_bytes(options.type)));
    const std::int64_t each = std::clamp<std::int64_t>(options.document_tokens, 16, 1 << 30);
    std::vector<std::int32_t> lengths(static_cast<std::size_t>(tokens / each),
                                      static_cast<std::int32_t>(each));
    if (tokens % each > 0) lengths.push_back(static_cast<std::int32_t>(tokens % each));
    std::vector<std::int64_t> documents(lengths.size() + 1);
    for (std::size_t i = 0; i < documents.size(); ++i) documents[i] = static_cast<std::int64_t>(i);
    const io::unique_fd fd(::open(idx_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd) throw io_error(idx_, "open", errno);
    io::pwrite_all(fd, formats::encode_mmidx(options.type, lengths, documents), 0, idx_);
  }

  std::filesystem::path bin_;
  std::filesystem::path idx_;
  io::unique_fd fd_;
  std::uint64_t bytes_ = 0;
  double rate_ = 0;
};

/// Serves the probe's dataset to loaders at full speed.
class probe_loaders {
 public:
  /// @param options  must outlive this object
  probe_loaders(const std::filesystem::path& prefix, const probe_options& options)
      : probe_(options), options_(options.loader) {
    dataset::instant_source source;
    source.prefix = prefix;
    dataset::instant_options order;
    order.seq_len = options.seq_len;
    order.segments = {{.first_step = 0, .sources = {{0, 1.0}}}};
    run_ = std::make_shared<const dataset::instant_run>(std::vector{source}, order);
    samples_ = run_->round_of(0, 0).last;
    options_.fields = no_host_fields;
    options_.field_rules = {};
    options_.boundaries = false;
    options_.positions_at_boundaries = false;
    options_.context_parallel = 1;
    options_.cp_rank = 0;
    options_.held = 1;
    options_.global_batch_size = 0;
    options_.rampup.reset();
    options_.sampler = sampler_type::single;
    options_.edits.clear();
    options_.memory = {};
    choose_reader_of(options, prefix);
  }

  /// Lets several loaders serve batches for a while. Returns the seconds per batch of each.
  ///
  /// @param most  stop after this number of batches of each loader
  double period(std::int64_t loaders, double time, std::int64_t most) {
    std::vector<double> periods(static_cast<std::size_t>(loaders));
    std::vector<std::exception_ptr> failures(periods.size());
    std::barrier together(static_cast<std::ptrdiff_t>(loaders));
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < periods.size(); ++i) {
        threads.emplace_back([&, i] {
          try {
            periods[i] = period_of(static_cast<std::int64_t>(i), loaders, time, most, together);
          } catch (...) {
            failures[i] = std::current_exception();
            together.arrive_and_drop();  // so that no other loader waits for the failed one
          }
        });
      }
    }
    for (const std::exception_ptr& each : failures) {
      if (each) std::rethrow_exception(each);
    }
    double sum = 0;
    for (const double each : periods) sum += each;
    return sum / static_cast<double>(loaders);
  }

  /// Number of batches that each loader served in the last call of `period`; the smallest one.
  std::int64_t served() const noexcept { return served_; }
  const std::string& reader() const noexcept { return reader_; }

 private:
  // The choice that the reader `auto` makes for the data of the run, which may be much larger.
  void choose_reader_of(const probe_options& options, const std::filesystem::path& prefix) {
    if (!options_.io.back_end.empty() && options_.io.back_end != name_of(back_end::automatic)) {
      return;
    }
    reader_facts facts;
    facts.bytes = options.data_bytes;
    facts.files = options.data_files;
    const file_system_kind kind = kind_of(prefix.parent_path());
    if (kind == file_system_kind::network) facts.network_files = facts.files;
    if (kind == file_system_kind::memory) facts.memory_files = facts.files;
    if (options.available_memory > 0) facts.available = options.available_memory;
    facts.uring = probe_uring().usable;
    const reader_choice choice = choose_reader(facts);
    options_.io.back_end = name_of(choice.take);
    options_.io.reader.advice = choice.advice;
  }

  double period_of(std::int64_t rank, std::int64_t loaders, double time, std::int64_t most,
                   std::barrier<>& together) {
    loader_options own = options_;
    own.rank = rank;
    own.world_size = loaders;
    batch_loader loader(run_, own);
    const std::int64_t slots = own.look_ahead + own.held + own.threads;
    const std::int64_t all =
        std::min(most, samples_ / (own.batch_size * loaders));  // one epoch at most
    together.arrive_and_wait();
    // The first batches fill the ring and begin the prefetches, so they are not measured.
    std::int64_t number = 0;
    std::uint32_t looked = 0;
    const auto take = [&] {
      looked = formats::crc32c(loader.next()->bytes(), looked);  // reads all bytes, like a user
      ++number;
    };
    while (number < std::min(slots, all / 2)) take();
    const std::int64_t first = number;
    const auto begin = probe_clock::now();
    // Looking at the clock takes as long as a part of a small batch.
    std::int64_t until = std::min(all, first + 2);
    while (number < all && (number < until || seconds_since(begin) < time)) {
      stop_if_asked(probe_);
      until = std::min(all, std::max(until, number + (number - first) / 8));
      do take();
      while (number < until);
    }
    const double took = seconds_since(begin);
    if (rank == 0) {
      served_ = number;
      reader_ = loader.observe().readers.at(0).granted;
    }
    return took / static_cast<double>(std::max<std::int64_t>(1, number - first));
  }

  const probe_options& probe_;
  loader_options options_;
  std::shared_ptr<const dataset::instant_run> run_;
  std::int64_t samples_ = 0;
  std::int64_t served_ = 0;  // written by the thread of rank 0
  std::string reader_;
};

inline std::uint64_t space_for_probe(const std::filesystem::path& folder,
                                     const probe_options& options) {
  if (!io::is_folder(folder)) {
    throw config_error(folder.string() +
                       ": no such folder; expected a folder on the storage of "
                       "the data");
  }
  struct ::statvfs status {};
  if (::statvfs(folder.c_str(), &status) != 0) throw io_error(folder, "statvfs", errno);
  const std::uint64_t free = std::uint64_t{status.f_bavail} * status.f_frsize;
  const std::uint64_t row = static_cast<std::uint64_t>(options.seq_len + 1) *
                            static_cast<std::uint64_t>(formats::size_bytes(options.type));
  const std::uint64_t least =
      64 * row * static_cast<std::uint64_t>(options.loader.batch_size * options.loaders);
  if (free / 4 < least) {
    throw config_error(folder.string() + ": a probe may take a quarter of the free space, " +
                       bytes_text(static_cast<std::int64_t>(free / 4)) + ", and needs " +
                       bytes_text(static_cast<std::int64_t>(least)) +
                       " for 64 micro-batches; use a folder with more space");
  }
  return std::max(least, std::min(free / 4, options.most_bytes));
}

}  // namespace detail

MILLRACE_INLINE storage_probe probe_storage(const std::filesystem::path& folder,
                                            const probe_options& options) {
  const auto tell = [&](const char* what) {
    if (options.progress) options.progress(what);
  };
  const std::uint64_t most = detail::space_for_probe(folder, options);
  const io::temporary_folder own(folder, ".millrace-probe-");
  tell("writing");
  const detail::probe_data data(own.path() / "probe", options, most);
  storage_probe found;
  found.bytes = data.bytes();
  found.write_bytes_per_second = data.write_bytes_per_second();
  detail::probe_loaders loaders(own.path() / "probe", options);
  const double time = options.time.count();
  constexpr std::int64_t all = std::int64_t{1} << 40;

  tell("reading with one loader");
  found.was_cold = data.drop();
  found.speed.cold_s = loaders.period(1, 0.25 * time, all);
  // The same batches again, which are in the page cache now. The first pass only maps their pages.
  const std::int64_t served = loaders.served();
  (void)loaders.period(1, 0.1 * time, served);
  found.speed.warm_s = loaders.period(1, 0.1 * time, served);
  found.reader = loaders.reader();
  tell("reading with several loaders");
  found.was_cold = data.drop() && found.was_cold;
  found.speed.loaders = options.loaders;
  found.speed.shared_s =
      options.loaders == 1 ? found.speed.cold_s : loaders.period(options.loaders, 0.25 * time, all);
  tell("reading a file");
  (void)data.drop();
  found.speed.index_bytes_per_second = data.sequential_rate(0.1 * time);
  return found;
}

}  // namespace millrace::loader
