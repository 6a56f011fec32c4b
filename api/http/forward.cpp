// SPDX-License-Identifier: Apache-2.0
#include "api/http/forward.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <set>

#include "api/http/uri.hpp"

namespace vfmgr::http {
namespace {

constexpr std::array<std::string_view, 8> passed_on{
    "accept",   "accept-encoding", "content-type",  "idempotency-key",
    "if-match", "if-none-match",   "last-event-id", "x-request-id"};

// These headers belong to the connection (RFC 9110, 7.6.1), to the message's framing, or to the
// session with the server that answered, whose client is this program.
constexpr std::array<std::string_view, 18> not_passed_back{"connection",
                                                           "keep-alive",
                                                           "proxy-connection",
                                                           "proxy-authenticate",
                                                           "te",
                                                           "trailer",
                                                           "transfer-encoding",
                                                           "upgrade",
                                                           "content-length",
                                                           "content-type",
                                                           "date",
                                                           "server",
                                                           "set-cookie",
                                                           "alt-svc",
                                                           "clear-site-data",
                                                           "strict-transport-security",
                                                           "www-authenticate",
                                                           "x-request-id"};

// The header Connection names others that end here.
std::set<std::string> named_by_connection(Response const& answer) {
    std::set<std::string> names;
    auto const connection = answer.headers.find("connection");
    if (connection == answer.headers.end()) return names;
    std::string name;
    for (char const c : connection->second + ",") {
        if (c == ' ' || c == '\t') continue;
        if (c != ',') {
            name += c;
            continue;
        }
        names.insert(lower_case(std::exchange(name, {})));
    }
    return names;
}

constexpr std::string_view api_root = "/v1";
constexpr std::size_t held_bytes_max = 64 * 1024;

// What lies between the thread of the pool, which fills it, and that of the server, which empties
// it.
class Passage {
  public:
    Passage(PassedStream stream, Respond respond)
        : stream_(std::move(stream)), respond_(std::move(respond)) {}

    static void begin(ClientPool& pool, std::shared_ptr<Passage> const& passage) {
        auto followed = pool.follow(
            passage->stream_.target, passage->stream_.request, passage->stream_.silence_max,
            {.take = [passage](std::string_view part) { take(passage, part); },
             .ended = [passage](Result<Response> last) { ended(passage, std::move(last)); },
             .begun = [passage](Response first) { begun(passage, std::move(first)); }});
        std::lock_guard const lock(passage->mutex_);
        if (passage->over_) return;  // `followed` ends after the lock, as it has to
        passage->followed_ = std::move(followed);
        if (passage->full_) passage->followed_.pause();
    }

  private:
    using Shared = std::shared_ptr<Passage>;

    static void begun(Shared const& passage, Response first) {
        auto answer = forwarded_answer(std::move(first), passage->stream_.below);
        // Ends with its stream: the client has gone, or takes no more.
        auto const reader = held([passage] { passage->leave(); });
        auto stream = std::make_shared<Stream>();
        stream->next = [passage, reader](Stream::Due) { return passage->next(); };
        stream->begin = [passage, reader](std::function<void()> wake) {
            passage->wake_ = std::move(wake);
        };
        answer.stream = std::move(stream);
        passage->begun_ = true;
        std::exchange(passage->respond_, nullptr)(std::move(answer));
    }

    static void take(Shared const& passage, std::string_view part) {
        std::lock_guard const lock(passage->mutex_);
        passage->frames_.push_back(std::make_shared<std::string const>(part));
        passage->held_bytes_ += part.size();
        if (passage->held_bytes_ >= held_bytes_max) {
            passage->full_ = true;
            passage->followed_.pause();
        }
        if (passage->frames_.size() == 1) wake(passage);
    }

    static void ended(Shared const& passage, Result<Response> last) {
        if (!passage->begun_) {
            auto const& request = passage->stream_.request;
            auto const id = request.headers.find("x-request-id");
            auto const respond = std::exchange(passage->respond_, nullptr);
            respond(last ? forwarded_answer(std::move(*last), passage->stream_.below)
                         : problem_response(last.error(), passage->stream_.received_path,
                                            id == request.headers.end() ? "" : id->second));
        }
        {
            std::lock_guard const lock(passage->mutex_);
            passage->ended_ = true;
            wake(passage);
        }
        passage->leave();
    }

    // On the server's thread; it drops the call if it has stopped.
    static void wake(Shared const& passage) {
        passage->stream_.post([passage] {
            if (passage->wake_) passage->wake_();
        });
    }

    std::optional<std::vector<Frame>> next() {
        std::lock_guard const lock(mutex_);
        if (frames_.empty() && ended_) return std::nullopt;
        held_bytes_ = 0;
        if (std::exchange(full_, false)) followed_.resume();
        return std::exchange(frames_, {});
    }

    // Without the lock: a handle waits for its callbacks, which take it.
    void leave() {
        Followed followed;
        std::lock_guard const lock(mutex_);
        over_ = true;
        std::swap(followed, followed_);
    }

    PassedStream const stream_;
    Respond respond_;  // pool's thread only, as the next
    bool begun_ = false;
    std::function<void()> wake_;  // server's thread only
    std::mutex mutex_;            // of the rest
    std::vector<Frame> frames_;
    std::size_t held_bytes_ = 0;
    bool full_ = false;   // and so paused
    bool ended_ = false;  // nothing more comes
    bool over_ = false;   // nobody takes any more
    Followed followed_;
};

}  // namespace

Request forwarded(Request const& received, std::string path) {
    Request request;
    request.method = received.method;
    request.path = std::move(path);
    request.query = received.query;
    request.body = received.body;
    for (auto const& [name, value] : received.headers)
        if (std::ranges::find(passed_on, name) != passed_on.end()) request.headers[name] = value;
    return request;
}

Response forwarded_answer(Response answer, std::string const& below) {
    auto const named = named_by_connection(answer);
    std::erase_if(answer.headers, [&](auto const& header) {
        return named.contains(header.first) ||
               std::ranges::find(not_passed_back, header.first) != not_passed_back.end();
    });
    if (answer.content_type.empty()) answer.content_type = "application/octet-stream";
    auto const location = answer.headers.find("location");
    if (!below.empty() && location != answer.headers.end() &&
        location->second.starts_with(std::string(api_root) + "/"))
        location->second.replace(0, api_root.size(), below);
    return answer;
}

void forward_stream(ClientPool& pool, PassedStream stream, Respond respond) {
    Passage::begin(pool, std::make_shared<Passage>(std::move(stream), std::move(respond)));
}

}  // namespace vfmgr::http
