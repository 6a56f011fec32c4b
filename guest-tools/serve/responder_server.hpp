// SPDX-License-Identifier: Apache-2.0
// A responder for other hosts (api/openapi-responder.yaml): clients with the token may open
// sessions on it. Owned by serve(); the handler is called on the io thread and never blocks, and
// the work runs on threads of its own.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "api/http/http.hpp"
#include "api/types/responder.hpp"
#include "api/types/time.hpp"
#include "guest-tools/serve/responder_route.hpp"
#include "guest-tools/verify/responder.hpp"

namespace vfmgr::serve {

struct Served {
    ResponderInfo info;
    std::string ifname;  // the netdev that has info.address
    std::string token;
};

class ResponderServer {
  public:
    ResponderServer(Served served, verify::Responder& responder);
    ~ResponderServer();
    ResponderServer(ResponderServer const&) = delete;
    ResponderServer& operator=(ResponderServer const&) = delete;

    // For Server::listen(). Valid during the lifetime of this object; stop the server first.
    [[nodiscard]] http::Handler handler();

  private:
    struct Job {
        http::Request request;
        http::FoundRoute<To> route;
        http::Respond respond;
    };
    void accept(http::Request request, http::Respond respond);
    [[nodiscard]] Result<void> check_token(http::Request const& request) const;
    [[nodiscard]] Result<void> enqueue(Job job);
    void work();
    [[nodiscard]] Result<http::Response> answer(Job const& job);
    [[nodiscard]] Result<http::Response> open_session(Job const& job);
    [[nodiscard]] Result<http::Response> close_session(Job const& job);
    void remember(std::string const& session);
    [[nodiscard]] Time forget(std::string const& session);

    Served const served_;
    verify::Responder& responder_;
    std::mutex mutex_;  // guards what follows; never held while the responder works
    std::condition_variable wake_;
    std::deque<Job> jobs_;
    std::map<std::string, Time> started_;  // by session
    bool stopping_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace vfmgr::serve
