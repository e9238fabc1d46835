package routegin_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/spillway-go/spillway/route"
	"github.com/spillway-go/spillway/routegin"
)

type patient struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

var errUnknown = errors.New("unknown patient")

// ward is the service that moves to routegin. Its storage and its middleware do not change.
type ward struct{ patients map[string]patient }

func newWard() *ward { return &ward{map[string]patient{"P1": {"P1", "Ada"}}} }

// signIn stands for the existing middleware of a service.
func signIn(c *gin.Context) {
	user := c.GetHeader("X-User")
	if user == "" {
		c.AbortWithStatusJSON(http.StatusUnauthorized, gin.H{"error": "who are you?"})
		return
	}
	c.Set("user", user)
}

// oldGet and oldCreate are the old handlers: each reads, checks and answers.
func (s *ward) oldGet(c *gin.Context) {
	p, ok := s.patients[c.Param("id")]
	if !ok {
		c.JSON(http.StatusNotFound, gin.H{"error": "unknown patient"})
		return
	}
	c.JSON(http.StatusOK, p)
}

func (s *ward) oldCreate(c *gin.Context) {
	var body struct {
		Name string `json:"name" binding:"required,max=80"`
	}
	if err := c.ShouldBindJSON(&body); err != nil {
		c.JSON(http.StatusBadRequest, gin.H{"error": err.Error()})
		return
	}
	c.JSON(http.StatusCreated, patient{"P2", body.Name + ", by " + c.GetString("user")})
}

// get and create are the typed functions that replace oldGet and oldCreate.
type get struct {
	ID string `path:"id"`
}

func (s *ward) get(_ *routegin.Context, req get) (patient, error) {
	p, ok := s.patients[req.ID]
	if !ok {
		return patient{}, errUnknown
	}
	return p, nil
}

type create struct {
	Name string `json:"name" validate:"required,max=80"`
}

func (s *ward) create(c *routegin.Context, req create) (patient, error) {
	return patient{"P2", fmt.Sprint(req.Name, ", by ", c.Value("user"))}, nil
}

// before is the service on gin alone.
func (s *ward) before() http.Handler {
	engine := gin.New()
	v1 := engine.Group("/v1", signIn)
	v1.GET("/patients/:id", s.oldGet)
	v1.POST("/patients", s.oldCreate)
	return engine
}

// firstStep has one typed route. The other handler and the middleware are unchanged.
func (s *ward) firstStep() http.Handler {
	engine := gin.New()
	v1 := engine.Group("/v1", signIn)
	v1.GET("/patients/:id", s.oldGet)

	api := routegin.NewAPI(route.Config{Untimed: true}) // for the sake of stable output
	err := api.Register(v1, routegin.New("POST", "/patients", s.create).Status(http.StatusCreated))
	if err != nil {
		panic(err)
	}
	return engine
}

// lastStep has typed routes only, one place for errors, and a document.
func (s *ward) lastStep() http.Handler {
	engine := gin.New()
	v1 := engine.Group("/v1", signIn)

	api := routegin.NewAPI(route.Config{Untimed: true, Errors: route.Errors{
		route.Is(errUnknown, route.Problem{Status: http.StatusNotFound, Type: "unknown-patient", Detail: "there is no patient of that id"}),
	}})
	err := api.Register(v1,
		routegin.New("GET", "/patients/:id", s.get).Name("getPatient"),
		routegin.New("POST", "/patients", s.create).Name("createPatient").Status(http.StatusCreated),
	)
	if err != nil {
		panic(err)
	}
	doc, err := api.OpenAPI(route.Info{Title: "Patients", Version: "1"})
	if err != nil {
		panic(err)
	}
	engine.GET("/openapi.json", func(c *gin.Context) { c.Data(http.StatusOK, "application/json", doc) })
	return engine
}

func send(h http.Handler, method, target, body string) {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-User", "grace")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	answer, _, _ := strings.Cut(w.Body.String(), "\n")
	fmt.Println(w.Code, answer)
}

// A gin service moves route by route: old handlers and typed routes stand on one
// engine, behind the same middleware.
func Example() {
	gin.SetMode(gin.ReleaseMode)
	svc := newWard()
	for i, service := range []http.Handler{svc.before(), svc.firstStep(), svc.lastStep()} {
		fmt.Println("-- step", i)
		send(service, "GET", "/v1/patients/P1", "")
		send(service, "GET", "/v1/patients/P9", "")
		send(service, "POST", "/v1/patients", `{"name":"Mary"}`)
		send(service, "POST", "/v1/patients", `{"nmae":"Mary"}`)
	}
	// Output:
	// -- step 0
	// 200 {"id":"P1","name":"Ada"}
	// 404 {"error":"unknown patient"}
	// 201 {"id":"P2","name":"Mary, by grace"}
	// 400 {"error":"Key: 'Name' Error:Field validation for 'Name' failed on the 'required' tag"}
	// -- step 1
	// 200 {"id":"P1","name":"Ada"}
	// 404 {"error":"unknown patient"}
	// 201 {"id":"P2","name":"Mary, by grace"}
	// 400 {"type":"urn:spillway:problem:invalid-request","title":"Bad Request","status":400,"detail":"the request has faults; each is listed","errors":[{"detail":"is not a member","pointer":"#/nmae"},{"detail":"is required","pointer":"#/name"}]}
	// -- step 2
	// 200 {"id":"P1","name":"Ada"}
	// 404 {"type":"urn:spillway:problem:unknown-patient","title":"Not Found","status":404,"detail":"there is no patient of that id"}
	// 201 {"id":"P2","name":"Mary, by grace"}
	// 400 {"type":"urn:spillway:problem:invalid-request","title":"Bad Request","status":400,"detail":"the request has faults; each is listed","errors":[{"detail":"is not a member","pointer":"#/nmae"},{"detail":"is required","pointer":"#/name"}]}
}

// The method Gin gives access to features of gin's own context, while the handler runs.
func ExampleContext_Gin() {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	err := routegin.NewAPI(route.Config{Untimed: true}).Register(engine,
		routegin.New("GET", "/whoami", func(c *routegin.Context, _ route.Empty) (ip string, _ error) {
			c.Gin(func(g *gin.Context) {
				ip = g.ClientIP()
				g.SetCookie("seen", "yes", 60, "/", "", true, true)
			})
			return ip, nil
		}))
	if err != nil {
		panic(err)
	}
	send(engine, "GET", "/whoami", "")
	// Output: 200 "192.0.2.1"
}
