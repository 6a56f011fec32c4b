// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/interop/tcp_server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <functional>
#include <utility>
#include <vector>

#include "api/os/descriptor.hpp"
#include "api/os/socket_address.hpp"
#include "api/types/enum_names.hpp"
#include "vfmgr/proof/host/host_stream.hpp"
#include "vfmgr/proof/interop/lines.hpp"
#include "vfmgr/rdma/device.hpp"

namespace vfmgr::interop {
namespace {

using Steady = std::chrono::steady_clock;
// ibv_rc_pingpong closes its connection before its test, so only silence shows that the test has
// ended. The test may start late; after that a message is delayed by seven retries at most.
constexpr std::chrono::seconds silence_before{5}, silence_after{2};
constexpr std::chrono::milliseconds poll_interval{250};
constexpr std::uint32_t pingpong_bytes_max = 1 << 20;
constexpr std::uint32_t pingpong_depth = 64;

constexpr std::size_t cache_line_bytes = 4, mtu_bytes = 2;
// For ib_send_bw and ib_send_lat: at least as many as the client keeps outstanding.
constexpr std::uint32_t receives = 512;

StreamKind kind_of(InteropTest test) {
    return enum_value<StreamKind>(enum_name(test)).value_or(StreamKind::one_sided);
}

// perftest's server with a TCP set-up (vfmgr/rdma/RDMA.md#perftest): ib_write_bw,
// ib_read_bw, ib_read_lat, and with the right terms ib_send_bw, ib_send_lat, ib_write_lat. The
// server answers each message of the client with one of the same length, until the client
// disconnects. One thread: the conversation's.
class Perftest {
  public:
    // `begin_test` is called before the first queue pair is created.
    Perftest(TcpStream& client, Terms const& terms, Shares& shares,
             std::function<Result<void>()> begin_test)
        : client_(client), terms_(terms), shares_(shares), begin_test_(std::move(begin_test)) {}

    // `version`: the client's first message. Returns when the client has disconnected.
    Result<void> serve(std::string version, Deadline handshake) {
        VFMGR_CHECK(agree(version, handshake));
        while (true) {
            auto const deadline = pairs_.empty() ? handshake : terms_.until;
            auto const head = client_.read(perftest_value_bytes, deadline);
            // The "done" of older versions is shorter than any other message.
            if (!head && head.error().problem == Problem::unavailable && !pairs_.empty()) return {};
            if (!head) return fail(head.error());
            if (begins_perftest_line(*head)) {
                VFMGR_TRY(auto const rest,
                          client_.read(perftest_line_bytes - head->size(), deadline));
                VFMGR_CHECK(answer_line(*head + rest, deadline));
            } else {
                // A result of the client's. The server sends zeros: only the client measures.
                VFMGR_CHECK(client_.write(std::string(perftest_value_bytes, '\0'), deadline));
            }
        }
    }

  private:
    // A queue pair of the client's, and this server's end of it.
    struct Pair {
        Shares::Share share;
        std::uint32_t client = 0;  // its queue pair number
        std::unique_ptr<verify::HostStream> stream;
        std::string answer;
        bool connected = false;  // the client's end
    };

    // Exchanges version, page size and cache line, of which both ends take the larger, and the path
    // MTU, of which they take the smaller.
    Result<void> agree(std::string const& version, Deadline handshake) {
        std::string own(perftest_version);
        own.resize(version.size());
        VFMGR_CHECK(client_.write(own, handshake));
        VFMGR_TRY(auto const page, client_.read(perftest_page_size, handshake));
        page_bytes_ = perftest_page_bytes(page);
        if (page_bytes_ == 0)
            return fail(Problem::invalid_request, "perftest's page size is not 4 to 64 KiB",
                        "use perftest 5.70 or later");
        VFMGR_CHECK(client_.write(page, handshake));
        VFMGR_TRY(auto const cache_line, client_.read(cache_line_bytes, handshake));
        VFMGR_CHECK(client_.write(cache_line, handshake));
        VFMGR_TRY(auto const mtu_text, client_.read(mtu_bytes, handshake));
        auto const mtu = perftest_mtu_bytes(mtu_text);
        if (mtu == 0)
            return fail(Problem::invalid_request,
                        "perftest's path MTU is not 256, 512, 1024, 2048 or 4096",
                        "use perftest 5.70 or later");
        VFMGR_TRY(auto const endpoint, verify::open_host_endpoint(terms_.permit, port_time));
        path_mtu_ = std::min(mtu, endpoint.path_mtu);
        return client_.write(make_perftest_mtu(endpoint.path_mtu), handshake);
    }

    Result<void> answer_line(std::string const& line, Deadline deadline) {
        auto const mtu_text = parse_perftest_line(line);
        if (!mtu_text)
            return fail(Problem::invalid_request, "a line is not one that perftest sends",
                        "use perftest 5.70 or later, without --data_validation");
        auto const pairs_before = pairs_.size();
        VFMGR_TRY(auto* const pair, pair_of(*mtu_text));
        VFMGR_CHECK(client_.write(pair->answer, deadline));
        // The second line for a pair means that the client has connected it. ib_write_lat's client
        // then waits for the server's first write (perftest's run_iter_lat_write).
        bool const again = pairs_.size() == pairs_before;
        if (again && !std::exchange(pair->connected, true)) pair->stream->lead();
        return {};
    }

    // The client sends a queue pair's line when it creates it, and again to synchronise both ends.
    Result<Pair*> pair_of(PerftestLine const& line) {
        auto const known = std::ranges::find(pairs_, line.end.qp_num, &Pair::client);
        if (known != pairs_.end()) return &*known;
        VFMGR_CHECK(check_size());
        if (pairs_.empty()) VFMGR_CHECK(begin_test_());
        VFMGR_TRY(auto opened, open(line));
        return &pairs_.emplace_back(std::move(opened));
    }

    // Short messages advance through a page on either end.
    std::uint32_t bytes_of_a_pair() const {
        auto const message = terms_.request.message_bytes;
        return terms_.request.test == InteropTest::one_sided ? std::max(message, page_bytes_)
                                                             : message;
    }

    // Limits the memory of one client. `Shares` limits the number of pairs, for all clients.
    Result<void> check_size() const {
        if (!pairs_.empty() && terms_.request.test == InteropTest::write_echo)
            return fail(Problem::limit_exceeded, "write_echo takes a CPU for its one queue pair",
                        "start it without -q");
        if ((pairs_.size() + 1) * std::uint64_t{bytes_of_a_pair()} <= conversation_bytes_max)
            return {};
        return fail(Problem::limit_exceeded,
                    fmt::format("{} queue pairs of {} bytes each are more than {} bytes",
                                pairs_.size() + 1, bytes_of_a_pair(), conversation_bytes_max),
                    "open it with a smaller message_bytes");
    }

    Result<Pair> open(PerftestLine const& line) const {
        VFMGR_TRY(auto share,
                  shares_.take(terms_.permit.attachment, taken_by_pair(terms_.request.test)));
        StreamRequest request{
            kind_of(terms_.request.test), bytes_of_a_pair(), receives, {line.end}, std::nullopt};
        request.pairs.front().path_mtu = path_mtu_;
        if (request.kind == StreamKind::write_echo) {
            request.back = line.memory;
            request.back->length = request.message_bytes;
        }
        VFMGR_TRY(auto stream,
                  verify::HostStream::open(terms_.permit, request, stream_limits(terms_)));
        auto const& offer = stream->offer();
        auto answer = make_perftest_line({offer.pairs.front(), offer.memory});
        return Pair{std::move(share), line.end.qp_num, std::move(stream), std::move(answer), false};
    }

    TcpStream& client_;
    Terms const& terms_;
    Shares& shares_;
    std::function<Result<void>()> begin_test_;
    std::uint32_t page_bytes_ = 0;   // of the client's memory
    std::uint32_t path_mtu_ = 1024;  // bytes, for both ends
    std::vector<Pair> pairs_;
};

constexpr std::chrono::milliseconds observe_again{200};

// The answer to a write is awaited by polling memory, which takes a CPU.
std::size_t tests_at_once(InteropTest test) {
    return test == InteropTest::write_echo ? 1 : tests_max;
}

FileDescriptor keep_one_back() {
    return FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace

// One client of a TCP set-up, from its first byte to its last. Owned by the server; runs on a
// thread of its own; stop() from any.
class TcpServer::Conversation {
  public:
    // `own` is the share that its connection takes.
    Conversation(TcpServer& server, FileDescriptor socket, Shares::Share own)
        : server_(server), own_(std::move(own)), client_(std::move(socket)) {
        thread_ = std::thread([this] { run(); });
    }
    ~Conversation() {
        stop();
        thread_.join();
    }
    Conversation(Conversation const&) = delete;
    Conversation& operator=(Conversation const&) = delete;

    // Ends it soon; the destructor waits for the end.
    void stop() {
        {
            std::lock_guard const lock(mutex_);
            stopping_ = true;
        }
        wake_.notify_all();
        client_.cut();
    }
    [[nodiscard]] bool testing() const { return testing_; }
    [[nodiscard]] bool ended() const { return ended_; }

  private:
    bool wait_stopped(std::chrono::milliseconds time) {
        std::unique_lock lock(mutex_);
        return wake_.wait_for(lock, time, [&] { return stopping_; });
    }

    // A client that has closed its connection is left to TCP; all others get a reset.
    void run() {
        if (!serve()) client_.end_hard();
        ended_ = true;
        server_.end(testing_);
    }

    Result<void> begin_test() {
        VFMGR_CHECK(server_.begin_test());
        testing_ = true;
        return {};
    }

    // perftest begins with its version in 16 bytes, ibv_rc_pingpong with a line of 52.
    Result<void> serve() {
        auto const handshake = Steady::now() + handshake_time;
        VFMGR_TRY(auto begun, client_.read(perftest_version_bytes, handshake));
        if (!is_perftest_version(begun)) return serve_pingpong(std::move(begun), handshake);
        Perftest server(client_, server_.terms_, server_.shares_, [this] { return begin_test(); });
        return server.serve(std::move(begun), handshake);
    }

    Result<void> serve_pingpong(std::string begun, Deadline handshake) {
        VFMGR_TRY(auto const rest, client_.read(pingpong_line_bytes - begun.size(), handshake));
        auto const peer = parse_pingpong_line(begun + rest);
        if (!peer)
            return fail(Problem::invalid_request,
                        "the first message is neither perftest's nor ibv_rc_pingpong's",
                        "use perftest or ibv_rc_pingpong");
        VFMGR_CHECK(begin_test());
        // The stream echoes sends, whichever test the window is for.
        VFMGR_TRY(auto const share, server_.shares_.take(server_.terms_.permit.attachment,
                                                         taken_by_pair(InteropTest::send_echo)));
        VFMGR_TRY(
            auto const stream,
            verify::HostStream::open(
                server_.terms_.permit,
                {StreamKind::send_echo, pingpong_bytes_max, pingpong_depth, {*peer}, std::nullopt},
                stream_limits(server_.terms_)));
        VFMGR_CHECK(client_.write(make_pingpong_line(stream->offer().pairs.front()), handshake));
        VFMGR_CHECK(client_.read(sizeof "done", handshake));
        // No event is raised when a RoCE peer goes away: the stalled message count is the only
        // sign.
        std::uint64_t before = 0;
        auto silent_since = Steady::now();
        while (!wait_stopped(poll_interval) && Steady::now() < server_.terms_.until) {
            auto const now = stream->messages();
            if (now != before) silent_since = Steady::now();
            if (Steady::now() - silent_since >= (now == 0 ? silence_before : silence_after)) break;
            before = now;
        }
        return {};
    }

    TcpServer& server_;
    Shares::Share const own_;
    TcpStream client_;
    std::atomic<bool> testing_ = false, ended_ = false;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool stopping_ = false;  // mutex_
    std::thread thread_;
};

Result<std::unique_ptr<TcpServer>> TcpServer::start(Terms const& terms, Shares& shares) {
    VFMGR_TRY(auto listener,
              listen_tcp({terms.permit.host_address, terms.tcp_port, terms.permit.host_netdev}));
    VFMGR_TRY(auto wake, make_event());
    return std::unique_ptr<TcpServer>(
        new TcpServer(terms, shares, std::move(listener), std::move(wake)));
}

TcpServer::TcpServer(Terms terms, Shares& shares, FileDescriptor listener, FileDescriptor wake)
    : terms_(std::move(terms)),
      shares_(shares),
      listener_(std::move(listener)),
      wake_(std::move(wake)),
      spare_(keep_one_back()) {
    thread_ = std::thread([this] { run(); });
}

TcpServer::~TcpServer() {
    stopping_ = true;
    raise_event(wake_);
    thread_.join();
}

Served TcpServer::served() const {
    std::lock_guard const lock(mutex_);
    return served_;
}

void TcpServer::run() {
    std::array const watched{wake_.get(), listener_.get()};
    while (!stopping_) {
        if (await_readable(watched, terms_.until) != Readiness::readable) break;
        take_event(wake_);
        std::erase_if(conversations_, [](auto const& one) { return one->ended(); });
        take();
    }
    for (auto const& one : conversations_) one->stop();
    conversations_.clear();
}

void TcpServer::take() {
    SocketAddress peer;
    auto* const room = peer.room();
    FileDescriptor socket(::accept4(listener_.get(), room, &peer.length, SOCK_CLOEXEC));
    if (!socket && (errno == EMFILE || errno == ENFILE)) return turn_away_without_descriptors();
    if (!socket) return;  // there is none, or the client has gone again
    serve(std::move(socket), peer.address() == terms_.permit.peer_address);
}

void TcpServer::serve(FileDescriptor socket, bool welcome) {
    make_room();
    auto own = shares_.take(terms_.permit.attachment, taken_by_client);
    if (!welcome || !own || conversations_.size() >= conversations_max) {
        TcpStream(std::move(socket)).end_hard();
        return end(false);
    }
    conversations_.push_back(
        std::make_unique<Conversation>(*this, std::move(socket), std::move(*own)));
}

// A client left in the listener's queue would keep it readable, and this thread spinning.
void TcpServer::turn_away_without_descriptors() {
    spare_.reset();
    FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    bool const came = static_cast<bool>(socket);
    if (came) {
        TcpStream(std::move(socket)).end_hard();
        end(false);
    }
    spare_ = keep_one_back();
    if (came) return;
    // Another thread took the freed descriptor. Pause; clients wait in the queue meanwhile.
    static_cast<void>(await_readable(std::array{wake_.get()}, Steady::now() + observe_again));
}

void TcpServer::make_room() {
    if (conversations_.size() < conversations_max) return;
    auto const idle =
        std::ranges::find_if(conversations_, [](auto const& one) { return !one->testing(); });
    if (idle != conversations_.end()) conversations_.erase(idle);
}

Result<void> TcpServer::begin_test() {
    std::lock_guard const lock(mutex_);
    auto const most = tests_at_once(terms_.request.test);
    if (testing_ >= most)
        return fail(Problem::limit_exceeded,
                    fmt::format("{} tests already run, no more are allowed", most),
                    "start it again when one has ended");
    ++testing_;
    ++served_.served;
    return {};
}

// On the conversation's thread.
void TcpServer::end(bool tested) {
    {
        std::lock_guard const lock(mutex_);
        if (tested)
            --testing_;
        else
            ++served_.refused;
    }
    raise_event(wake_);
}

}  // namespace vfmgr::interop
