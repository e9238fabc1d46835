package document

import (
	"strings"
	"testing"

	"github.com/spillway-go/spillway/load/chart"
)

func TestAPageShowsAllThatItHas(t *testing.T) {
	page := Page{
		Over: "A search", Title: "Two & one", Lead: []string{"Kept & proven."}, Foot: "spillway capacity URL", Body: "<section>more</section>",
		Figures: []Figure{{"Latency <ms>", chart.Lines{Height: 200, Series: []chart.Series{{Points: []chart.Point{{X: 1, Y: 2}}}}}.SVG()}},
		Facts:   []Fact{{"concurrency", "20", "Little's law\x1b"}},
	}
	text, err := page.HTML()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"A search", "Two &amp; one", "Kept &amp; proven.", "Latency &lt;ms&gt;", `<svg class="chart lines"`, "concurrency 20", "Little&#39;s law<",
		"<section>more</section>", "spillway capacity URL", ".chart", "skip",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(text, "<ms>") {
		t.Error("its text is not escaped")
	}
	if strings.Contains(text, "://") || strings.Contains(text, "src=") || !strings.Contains(text, `content="default-src 'none';`) {
		t.Error("it loads something, or may")
	}
}
