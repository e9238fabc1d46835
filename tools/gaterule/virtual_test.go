package gaterule

import (
	"go/ast"
	"slices"
)

// virtualIn returns the functions and literals of a package whose time is virtual: those
// handed to synctest.Test, or to a function that hands on its parameter there, and the
// declared functions and methods that nothing but such code mentions. A method that is
// mentioned nowhere, as it serves an interface, counts as its receiver's type does.
// Names stand for what they name: two methods of one name are one.
func virtualIn(pkg files) map[ast.Node]bool {
	decls := map[string][]*ast.FuncDecl{}
	for _, file := range pkg {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				decls[f.Name.Name] = append(decls[f.Name.Name], f)
			}
		}
	}
	starters := startersIn(decls)
	virtual := map[ast.Node]bool{}
	for before := -1; len(virtual) > before; {
		before = len(virtual)
		handed := map[*ast.Ident]bool{} // arguments of what starts a bubble
		inside, outside := map[string]int{}, map[string]int{}
		var decl string // the declared function that is visited
		for _, file := range pkg {
			ast.Walk(visitor{virtual: virtual, decl: &decl, visit: func(n ast.Node, in bool) {
				switch n := n.(type) {
				case *ast.CallExpr:
					if !starters.start(n) {
						return
					}
					for _, arg := range n.Args {
						switch arg := ast.Unparen(arg).(type) {
						case *ast.FuncLit:
							virtual[arg] = true
						case *ast.Ident:
							handed[arg] = true
						case *ast.SelectorExpr:
							handed[arg.Sel] = true
						case *ast.CallExpr: // synctest.Test(t, body(x)): body returns what runs
							if id, ok := arg.Fun.(*ast.Ident); ok {
								handed[id] = true
							}
						}
					}
				case *ast.Ident:
					switch {
					case n.Name == decl:
					case in || handed[n]:
						inside[n.Name]++
					default:
						outside[n.Name]++
					}
				}
			}}, file)
		}
		for name, fs := range decls {
			for _, f := range fs {
				by := name
				if f.Recv != nil && inside[by]+outside[by] == 0 {
					by = receiver(f)
				}
				if inside[by] > 0 && outside[by] == 0 {
					virtual[f] = true
				}
			}
		}
	}
	return virtual
}

// starters are the names of the functions that run an argument in a bubble.
type starters map[string]bool

// start reports whether a call runs an argument in a bubble.
func (s starters) start(call *ast.CallExpr) bool {
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.SelectorExpr:
		return named(fun, "synctest", "Test")
	case *ast.Ident:
		return s[fun.Name]
	}
	return false
}

// startersIn finds the functions that hand a parameter on to what starts a bubble.
func startersIn(decls map[string][]*ast.FuncDecl) starters {
	found := starters{}
	for before := -1; len(found) > before; {
		before = len(found)
		for name, fs := range decls {
			for _, f := range fs {
				functions := map[string]bool{}
				for _, field := range f.Type.Params.List {
					if _, ok := field.Type.(*ast.FuncType); ok {
						for _, p := range field.Names {
							functions[p.Name] = true
						}
					}
				}
				ast.Inspect(f.Body, func(n ast.Node) bool {
					call, ok := n.(*ast.CallExpr)
					if ok && found.start(call) {
						for _, arg := range call.Args {
							ast.Inspect(arg, func(n ast.Node) bool {
								if id, ok := n.(*ast.Ident); ok && functions[id.Name] {
									found[name] = true
								}
								return true
							})
						}
					}
					return true
				})
			}
		}
	}
	return found
}

// A visitor calls visit for every node but the names, receivers and types of declared
// functions, and says whether the node's time is virtual. A call comes before its
// arguments.
type visitor struct {
	in      bool
	virtual map[ast.Node]bool
	decl    *string
	visit   func(n ast.Node, in bool)
}

func (v visitor) Visit(n ast.Node) ast.Visitor {
	if n == nil {
		return nil
	}
	v.in = v.in || v.virtual[n]
	if f, ok := n.(*ast.FuncDecl); ok {
		if f.Body != nil {
			if v.decl != nil {
				*v.decl = f.Name.Name
			}
			for _, list := range []*ast.FieldList{f.Type.Params, f.Type.Results} {
				if list != nil {
					ast.Walk(v, list)
				}
			}
			ast.Walk(v, f.Body)
		}
		return nil
	}
	if t, ok := n.(*ast.TypeSpec); ok { // a type's own name is no mention
		ast.Walk(v, t.Type)
		return nil
	}
	v.visit(n, v.in)
	return v
}

// receiver returns the name of the type of a method.
func receiver(f *ast.FuncDecl) string {
	expr := f.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}

// named reports whether an expression is the name of a package's object.
func named(e ast.Expr, pkg string, objects ...string) bool {
	s, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	if !ok || x.Name != pkg {
		return false
	}
	return slices.Contains(objects, s.Sel.Name)
}
