// msprobe._page: the page and its queries for servers that are written in Python. Converts and forwards; decides
// nothing. A module of its own: a training script that imports msprobe loads no database and no page.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "serve/guest_page.h"

namespace nb = nanobind;

namespace msprobe {
namespace {

std::unique_ptr<serve::GuestPage> Make(const nb::bytes& directory, const nb::bytes& command) {
  auto page = serve::GuestPage::Make({directory.c_str(), directory.size()}, {command.c_str(), command.size()});
  if (!page.ok()) throw nb::value_error(page.status().message().c_str());
  return *std::move(page);
}

// `body_bytes` is what was announced; a larger body than is allowed need not be read.
// -> (status, [(name, value), ...], body)
nb::tuple Answer(serve::GuestPage* page, std::string_view method, std::string_view target, std::string_view token,
                 std::string_view content_type, uint64_t body_bytes, const nb::bytes& body) {
  serve::Request request;
  request.method = method;
  request.target = target;
  request.token = token;
  request.content_type = content_type;
  request.has_body = body_bytes != 0;
  request.body_bytes = body_bytes;
  request.body = {body.c_str(), body.size()};
  serve::Response response;
  {
    const nb::gil_scoped_release others_run;
    response = page->Answer(request);
  }
  nb::list headers;
  headers.append(nb::make_tuple("Content-Type", response.content_type));
  for (const auto& [name, value] : response.headers) headers.append(nb::make_tuple(name, value));
  return nb::make_tuple(response.status, headers, nb::bytes(response.body.data(), response.body.size()));
}

}  // namespace
}  // namespace msprobe

NB_MODULE(_page, m) {
  using namespace nb::literals;
  m.doc() = "The page and its queries for servers that are written in Python.";
  nb::class_<msprobe::serve::GuestPage>(m, "GuestPage", "The page over the files of one directory.")
      .def("answer", &msprobe::Answer, "method"_a, "target"_a, "token"_a, "content_type"_a, "body_bytes"_a, "body"_a,
           "Answers one request: (status, [(name, value), ...], body). A body longer than allowed need not be read.");
  m.def("make", &msprobe::Make, "directory"_a, "command"_a,
        "The page over this directory, with the msprobe command for what needs one; ValueError says why not.");
}
