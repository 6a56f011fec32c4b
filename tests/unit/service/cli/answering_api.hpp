// SPDX-License-Identifier: Apache-2.0
// vfctl, and an API for it that answers from a list. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/http/http.hpp"
#include "service/cli/commands.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace vfmgr::test {

struct Asked {
    std::string line;  // "GET /v1/pfs wait=1"
    std::string body;
    std::map<std::string, std::string> headers;
};

class Api {
  public:
    Api() {
        auto const listening = server_.listen(
            http::UnixListen{socket(), {}, 0600},
            [this](http::Request request, http::Respond respond) { answer(request, respond); });
        EXPECT_TRUE(listening) << listening.error().detail;
        server_.start();
    }
    ~Api() { server_.stop(); }
    [[nodiscard]] std::string socket() const { return file("socket"); }
    [[nodiscard]] std::string file(std::string const& name) const { return folder_.file(name); }

    // The n-th request with this line gets the n-th answer; later ones get the last answer again.
    void on(std::string const& line, int status, nlohmann::json const& body,
            std::map<std::string, std::string> headers = {}) {
        http::Response response;
        response.status = status;
        response.body = body.dump();
        response.headers = std::move(headers);
        std::lock_guard const lock(mutex_);
        answers_[line].push_back(std::move(response));
    }
    void refuse(std::string const& line, Error const& error) {
        std::lock_guard const lock(mutex_);
        answers_[line].push_back(http::problem_response(error, "/", "id"));
    }
    [[nodiscard]] std::vector<std::string> lines() {
        std::lock_guard const lock(mutex_);
        std::vector<std::string> lines;
        for (auto const& each : asked_) lines.push_back(each.line);
        return lines;
    }
    [[nodiscard]] Asked asked(std::string const& line) {
        std::lock_guard const lock(mutex_);
        for (auto const& each : asked_)
            if (each.line == line) return each;
        ADD_FAILURE() << "nobody asked " << line;
        return {};
    }

    [[nodiscard]] std::vector<Asked> all_asked(std::string const& line) {
        std::lock_guard const lock(mutex_);
        std::vector<Asked> all;
        for (auto const& each : asked_)
            if (each.line == line) all.push_back(each);
        return all;
    }

  private:
    void answer(http::Request const& request, http::Respond const& respond) {
        auto line = request.method + " " + request.path;
        for (auto const& [name, value] : request.query) line += " " + name + "=" + value;
        std::lock_guard const lock(mutex_);
        asked_.push_back({line, request.body, request.headers});
        auto& left = answers_[line];
        if (left.empty())
            return respond(http::problem_response(
                {Problem::not_found, "the test has no answer for " + line, "add one"}, "/", "id"));
        respond(left.front());
        if (left.size() > 1) left.erase(left.begin());
    }

    TemporaryFolder folder_;
    http::Server server_{http::Limits{}};
    std::mutex mutex_;
    std::map<std::string, std::vector<http::Response>> answers_;
    std::vector<Asked> asked_;
};

struct Ran {
    int code = -1;
    std::string out;
    std::string err;
};

inline Ran vfctl(Api const& api, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--socket", api.socket()});
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    Ran ran;
    ran.code = run_vfctl(std::move(arguments));
    std::fflush(stdout);
    ran.out = testing::internal::GetCapturedStdout();
    ran.err = testing::internal::GetCapturedStderr();
    return ran;
}

}  // namespace vfmgr::test
